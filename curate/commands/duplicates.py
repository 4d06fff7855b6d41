"""`curate duplicates`: the groups of duplicates that a result went without, with what differs in them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.text_diff import LOOKED_AT, word_diff
from curate.configuration import ConfigurationError
from curate.visible import visible

if TYPE_CHECKING:
    from curate.commands.duplicate_groups import Group, Member
    from curate.datasets import Dataset
    from curate.run import Result

LARGEST: Final = 5
LISTED: Final = 10
LISTED_OF_ONE: Final = 100
EXCERPT: Final = 240
GONE: Final = "(no longer in the store)"


def add_duplicates(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `duplicates`."""
    command.set_defaults(command=show_duplicates)
    command.add_argument("store", metavar="DIR", help=f"store with a result: {STORE_HELP}")
    command.add_argument("--recipe", metavar="FOLDER", help="result in the store (default: the one that ran last)")
    command.add_argument("--stage", metavar="NAME", help="deduplication to look at (default: all of the result)")
    command.add_argument(
        "--largest", type=int, default=LARGEST, metavar="N", help=f"groups to show of each (default: {LARGEST})"
    )
    command.add_argument("--id", metavar="HEX", help="show the group of this document alone")
    add_store_options(command)


def show_duplicates(options: argparse.Namespace) -> int:
    """Print the groups; return 0."""
    from curate.run import open_result

    store = store_of(options)
    result = open_result(store, options.recipe or last_result(store))
    for line in browse(result, options.stage, options.largest, options.id):
        print(line)
    return 0


def browse(result: Result, stage: str | None = None, largest: int = LARGEST, one: str | None = None) -> Iterator[str]:
    """Yield lines about groups of duplicates of `result`: the `largest` of each stage, or that of the document `one`.

    Texts are masked and shortened; those of a source that may not be shown are not.

    Raises:
        ConfigurationError: there is no such stage, or `one` is no id or in no group.
    """
    from curate.commands.duplicate_groups import names_survivors

    stages = [dataset for dataset in result.stages if names_survivors(dataset)]
    chosen = [dataset for dataset in stages if stage in (None, dataset.name)]
    if not chosen:
        names = ", ".join(dataset.name for dataset in stages) or "no deduplication at all"
        raise ConfigurationError(f"the result has no deduplication {stage or ''!r}; it has {names}")
    found = False
    for dataset in chosen:
        groups = _groups(dataset, largest, one)
        found = found or bool(groups)
        if groups or one is None:
            yield f"{visible(dataset.name)}: {sum(group.size for group in groups):,} documents went for these survivors"
        for number, group in enumerate(groups):
            yield from _lines(dataset, number, group, forbidden_sources(result))
    if one is not None and not found:
        raise ConfigurationError(f"--id {one}: no duplicate, and nothing went because of it")


def _groups(dataset: Dataset, largest: int, one: str | None) -> Sequence[Group]:
    from curate.commands.duplicate_groups import group_of, largest_groups

    if one is None:
        return largest_groups(dataset, max(0, largest), LISTED)
    try:
        identity = bytes.fromhex(one)
    except ValueError:
        identity = b""
    if len(identity) != 16:
        raise ConfigurationError(f"--id {one}: an id has 32 hex digits")
    group = group_of(dataset, identity, LISTED_OF_ONE)
    return [] if group is None else [group]


def forbidden_sources(result: Result) -> frozenset[str]:
    """Return the sources of `result` whose texts may not be shown."""
    readers = [(dataset.manifest["operation"].get("reader") or {}).get("fields", {}) for dataset in result.stages]
    return frozenset(fields["source"] for fields in readers if not fields.get("excerpts", True))


def _lines(dataset: Dataset, number: int, group: Group, forbidden: frozenset[str]) -> Iterator[str]:
    """Yield the lines of a group; what differs is shown of the first member whose words do."""
    from curate.commands.duplicate_groups import texts_before

    texts = texts_before(dataset, [group.survivor, *(member.id for member in group.members)])
    frozen = next((member.reference for member in group.members if member.reference is not None), None)
    stays = None if frozen is not None else texts.get(group.survivor)  # the same id may be another text in a reference
    yield f"── group {number + 1}: 1 stayed, {group.size:,} went"
    where = GONE if frozen is None else f"(in the reference {visible(frozen)})"
    yield f"   stays {_document(group.survivor, stays, where)}"
    yield f"      {_excerpt(stays, forbidden)}"
    differs: Member | None = None
    for member in group.members:
        equal = f", has the text of {member.equal_to.hex()}" if member.equal_to else ""
        yield f"   went  {_document(member.id, texts.get(member.id))}: {visible(member.reason)}"
        similarity = f"{visible(member.similarity)}, " if member.similarity else ""
        yield f"      {similarity}{member.characters:,} characters{equal}"
        if differs is None and _text(stays, forbidden) != _text(texts.get(member.id), forbidden):
            differs = member
    if group.size > len(group.members):
        yield f"   … and {group.size - len(group.members):,} more; --id {group.survivor.hex()} lists more"
    if differs is not None and stays is not None and differs.id in texts:
        yield f"   from the survivor to {differs.id.hex()}:"
        pair = _text(stays, forbidden), _text(texts[differs.id], forbidden)
        lines = word_diff(*pair) if all(pair) else ["a source of these may not be shown"]
        yield from (f"      {line}" for line in lines)


def _document(identity: bytes, row: Mapping[str, Any] | None, otherwise: str = GONE) -> str:
    if row is None:
        return f"{identity.hex()} {otherwise}"
    url = f" {visible(row['url'], EXCERPT)}" if row.get("url") else ""
    return f"{identity.hex()} {visible(row['source'])}{url}"


def _text(row: Mapping[str, Any] | None, forbidden: frozenset[str]) -> str:
    """Return the text as it may be shown; nothing where it may not."""
    from transforms.pii import mask_excerpt

    return "" if row is None or row["source"] in forbidden else mask_excerpt(row["text"][:LOOKED_AT])


def _excerpt(row: Mapping[str, Any] | None, forbidden: frozenset[str]) -> str:
    if row is not None and row["source"] in forbidden:
        return "(texts of this source may not be shown)"
    return visible(" ".join(_text(row, forbidden)[: 2 * EXCERPT].split()), EXCERPT)
