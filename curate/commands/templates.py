"""`curate templates`: what deduplications left out of every comparison, as the passages that readers know."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from curate.commands.duplicates import forbidden_sources
from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.configuration import ConfigurationError
from curate.receipts import read_receipt, shard_folder
from curate.visible import visible

if TYPE_CHECKING:
    from curate.datasets import Dataset
    from curate.run import Result

COUNT: Final = 5
LOOKED_AT: Final = 2000
"""Documents of a source that passages are looked for in."""

LETTERS: Final = 200_000
"""Code points of a document that are looked at."""

EXCERPT: Final = 400


def add_templates(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `templates`."""
    command.set_defaults(command=templates)
    command.add_argument("store", metavar="DIR", help=f"store with a result: {STORE_HELP}")
    command.add_argument("--recipe", metavar="FOLDER", help="result in the store (default: the one that ran last)")
    command.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"passages a source (default: {COUNT})")
    add_store_options(command)


def templates(options: argparse.Namespace) -> int:
    """Print the passages; return 0."""
    from curate.run import open_result

    store = store_of(options)
    for line in show_templates(open_result(store, options.recipe or last_result(store)), options.count):
        print(line)
    return 0


def show_templates(result: Result, count: int = COUNT) -> Iterator[str]:
    """Yield lines about the templates of each deduplication of `result` that left some out: `count` passages a source.

    Passages are masked and shortened; those of a source that may not be shown are not.

    Raises:
        ConfigurationError: no stage of the result was told to leave templates out.
    """
    from transforms.exact_numbers import decimal_text

    chosen = [dataset for dataset in result.stages if _rule(dataset)]
    if not chosen:
        raise ConfigurationError(
            "no stage of this result leaves templates out, as deduplicate(…, method=…, without_templates=0.05) does"
        )
    for dataset in chosen:
        rule = _rule(dataset)
        share = decimal_text(Fraction(next(iter(rule["share"].values()))))
        yield f"{visible(dataset.name)}: shingles in more than {share} of a source's texts, {rule['least']:,} at least"
        listed, counted = _listed(dataset), dataset.statistics["templates"]
        for source in sorted(counted):
            mine = listed.get(source, {})
            texts = counted[source]["documents"]
            yield f"── {visible(source)}: {len(mine):,} shingles are templates, of {texts:,} distinct texts"
            if source in forbidden_sources(result):
                yield "   (texts of this source may not be shown)"
            elif mine:
                yield from _passages(dataset, source, mine, count)


def _rule(dataset: Dataset) -> dict[str, Any]:
    given = dataset.manifest["operation"].get("fields", {}).get("without_templates") or {}
    fields: dict[str, Any] = given.get("fields", {})
    return fields


def _listed(dataset: Dataset) -> dict[str, dict[int, int]]:
    """Return source → shingle → documents that have it."""
    import pyarrow.parquet as pq

    from curate.deduplication.templates import FILE, TEMPLATES

    listed: dict[str, dict[int, int]] = {}
    for entry in dataset.manifest["inner"]:
        receipt = read_receipt(dataset.store, entry["key"])
        if receipt is not None and FILE in receipt.files:
            path = dataset.store.local(f"{shard_folder(entry['key'])}/{FILE}")
            for row in pq.read_table(path, schema=TEMPLATES).to_pylist():
                listed.setdefault(row["source"], {})[row["shingle"]] = row["count"]
    return listed


def _passages(dataset: Dataset, source: str, counts: Mapping[int, int], count: int) -> Iterator[str]:
    """Yield a line for each of the `count` passages that most documents have, of equals the longest first."""
    from transforms.pii import mask_excerpt
    from transforms.template_passages import passages

    method = dataset.manifest["operation"]["fields"]["method"]["fields"]
    if method["unit"] != "word":
        yield "   (shingles of characters are not shown as passages)"
        return
    found: dict[str, int] = {}
    for text in _texts(dataset, source):
        for passage in passages(text[:LETTERS], counts, method["ngram"]):
            words = " ".join(passage.text.split())
            found[words] = max(found.get(words, 0), passage.count)
    if not found:
        yield f"   (not in the first {LOOKED_AT:,} documents of the source that are still in the store)"
    for words, documents in sorted(found.items(), key=lambda entry: (-entry[1], -len(entry[0]), entry[0]))[:count]:
        yield f"   in {documents:,} texts: {visible(mask_excerpt(words[: 2 * EXCERPT]), EXCERPT)}"
    if len(found) > count:
        yield f"   … and {len(found) - count:,} more passages; --count shows more"


def _texts(dataset: Dataset, source: str) -> Iterator[str]:
    """Yield the first documents of `source` as they came to the stage, where they are still in the store."""
    from curate.datasets import has_dataset, open_dataset

    left = LOOKED_AT
    for entry in dataset.manifest["inputs"]:
        if not has_dataset(dataset.store, entry["name"], entry["key"]):
            continue
        upstream = open_dataset(dataset.store, entry["name"], entry["key"])
        for batch in upstream.batches(["source", "text"]):
            for row in batch.to_pylist():
                if row["source"] == source:
                    left -= 1
                    yield row["text"]
                if not left:
                    return
