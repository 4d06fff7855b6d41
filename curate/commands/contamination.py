"""`curate contamination`: which items of benchmarks stand in a finished dataset, token cache or folder of files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.configuration import ConfigurationError
from curate.visible import visible

if TYPE_CHECKING:
    from curate.contamination.audit import Audit
    from curate.contamination.texts import Portion

FORM: Final = "NAME[/SPLIT]=FILE[,FIELDS]"
EXAMPLES: Final = """\
  curate contamination STORE --benchmark gsm8k/test=test.jsonl --benchmark arc=ARC.parquet --out lists
  curate contamination STORE/caches/NAME --benchmark mine=items.csv,question=Q,choices=A+B+C
  curate contamination STORE --ledger --benchmark gsm8k/test=test.jsonl

NAME is one of the common sets (curate contamination --known lists them) or any, with the names of its fields:
question=, answer=, choices=, passage=. FILE is a path or URL: .jsonl, .csv, .parquet (.gz, .zst). Exit status 1: a
leak or a variant was found.
"""


def add_contamination(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `contamination`."""
    command.set_defaults(command=contamination)
    command.epilog, command.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    command.add_argument(
        "place", nargs="?", metavar="DIR", help=f"store, dataset, token cache, or folder of Parquet: {STORE_HELP}"
    )
    command.add_argument("--benchmark", action="append", default=[], metavar=FORM, help="what to look for; repeatable")
    command.add_argument("--out", type=Path, metavar="FOLDER", help="write contamination.json and lists of items there")
    command.add_argument("--recipe", metavar="FOLDER", help="result in the store (default: the one that ran last)")
    command.add_argument("--ledger", action="store_true", help="what the run itself found, from its ledger")
    command.add_argument("--tokenizer", type=Path, metavar="FILE", help="of a token cache that lies outside its store")
    command.add_argument("--coverage", default="0.8", metavar="F", help="least share of an item (default: 0.8)")
    command.add_argument("--threads", type=int, default=1, metavar="N", help="threads that look (default: 1)")
    command.add_argument("--json", action="store_true", help="print the counts as one line of JSON")
    command.add_argument("--known", action="store_true", help="list the common sets and their fields")
    add_store_options(command)


def contamination(options: argparse.Namespace) -> int:
    """Print what is found, write the lists, and return 1 if an item is in the texts.

    Raises:
        ConfigurationError: no benchmark or place is given, or one is not what it should be.
    """
    if options.known:
        print("\n".join(known_lines()))
        return 0
    if options.place is None or not options.benchmark:
        raise ConfigurationError(f"curate contamination DIR --benchmark {FORM}: both are needed")
    from curate.contamination.audit import audit_texts, found_in_run
    from curate.contamination.files import benchmark_of
    from curate.contamination.texts import texts_at
    from curate.run import open_result
    from curate.running.compiling import compiling_told
    from transforms.contamination import Decontaminate

    store = store_of(options, options.place)
    try:
        looked = Decontaminate([benchmark_of(given) for given in options.benchmark], coverage=options.coverage)
    except (ValueError, ZeroDivisionError) as error:
        raise ConfigurationError(str(error)) from error
    if options.ledger:
        found = found_in_run(open_result(store, options.recipe or last_result(store)).stages, looked)
    else:
        is_result = options.recipe is None and store.exists("runs")
        recipe = last_result(store) if is_result else options.recipe
        portions = texts_at(store, recipe=recipe, tokenizer=options.tokenizer)
        with compiling_told():
            found = audit_texts(watched(portions), looked, max(1, options.threads))
    print(json.dumps(found.described(), ensure_ascii=False) if options.json else "\n".join(lines(found)))
    for path in found.write(options.out) if options.out is not None else ():
        print(path, file=sys.stderr)
    return 0 if found.is_clean or options.ledger else 1


def watched(portions: Iterable[Portion]) -> Iterator[Portion]:
    """Yield `portions`, and tell on stderr now and then how many documents were looked through."""
    from curate.running.progress import Progress

    progress = Progress("contamination", None, 0)
    for portion in portions:
        yield portion
        progress.advance(len(portion.texts), portion.texts.nbytes)
    progress.finish()


def lines(found: Audit) -> Iterator[str]:
    """Yield what an audit found, for a terminal."""
    from transforms.benchmark_registry import KNOWN

    total = found.documents.total()
    yield f"{total:,} documents of {len(found.documents):,} sources, {found.characters:,} characters"
    yield f"{'benchmark':24}{'items':>8}{'leak':>8}{'variant':>9}{'clean':>8}{'unchecked':>11}"
    for name, counts in found.described()["benchmarks"].items():
        numbers = (counts["items"], counts["leak"], counts["variant"], counts["clean"], counts["unchecked"])
        yield "{:24}{:>8,}{:>8,}{:>9,}{:>8,}{:>11,}".format(visible(name, 24), *numbers)
        for verdict, where in counts["documents"].items():
            shown = ", ".join(f"{visible(source, 60)} {documents:,}" for source, documents in list(where.items())[:8])
            yield f"  {verdict} in {sum(where.values()):,} documents: {shown}"
    checked = {protection.benchmark.partition("/")[0] for protection in found.protection}
    others = ", ".join(name for name in KNOWN if name not in checked)
    yield "Not checked: items too short or too plain (unchecked), paraphrases and translations, and every benchmark"
    yield f"that was not named, among the common ones {others}."


def known_lines() -> Iterator[str]:
    """Yield the sets of the registry."""
    from transforms.benchmark_registry import KNOWN

    for which in KNOWN.values():
        yield f"{which.name}: {which.origin}, {which.licence}, splits {', '.join(which.splits)}"
        for layout in which.layouts:
            parts = (f"{part} {' + '.join(v) if isinstance(v, tuple) else v}" for part, v in layout.items())
            yield f"    {', '.join(parts)}"
