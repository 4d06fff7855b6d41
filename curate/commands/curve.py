"""`curate dedup-curve`: how likely near duplicates of each similarity are found, and how many were.

The curve is arithmetic; with documents, all pairs of some of them are compared exactly, and the share of those that
the banding proposes stands beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from curate.commands.curve_plot import curve_svg
from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.configuration import ConfigurationError
from curate.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from curate.readers.reader import Reader
    from transforms.banding_curve import Point
    from transforms.minhash import MinHash

SIMILARITIES: Final = (0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
DOCUMENTS: Final = 3000
PAIRS: Final = 2000
THRESHOLD: Final = "0.8"


def add_curve(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `dedup-curve`."""
    command.set_defaults(command=show_curve)
    command.add_argument("--threshold", default=THRESHOLD, metavar="T", help="similarity of duplicates (default: 0.8)")
    command.add_argument("--bands", type=int, metavar="B", help="bands of hash functions")
    command.add_argument("--rows", type=int, metavar="R", help="hash functions in each")
    command.add_argument("--recall", type=float, metavar="P", help="instead: find pairs at T with this probability")
    command.add_argument("--measured", type=Path, metavar="PATH", help=".parquet, .jsonl(.gz, .zst), or a store")
    command.add_argument("--column", default="text", metavar="C", help="of the texts (default: text)")
    command.add_argument(
        "--documents", type=int, default=DOCUMENTS, metavar="N", help=f"first N of PATH (default: {DOCUMENTS:,})"
    )
    command.add_argument("--store", metavar="STORE", help=f"instead: measure what its last result did ({STORE_HELP})")
    command.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help=f"of --store (default: {PAIRS:,})")
    add_store_options(command)
    command.add_argument("--svg", type=Path, metavar="FILE", help="write the plot there")


def show_curve(options: argparse.Namespace) -> int:
    """Print the curve, and plot it; return 0."""
    from transforms.banding_curve import measured_points
    from transforms.minhash import MinHash

    if options.store is not None:
        return _measure_store(options)
    method = _method(options)
    methods = {"chosen": method, "default": MinHash(), "FineWeb": MinHash.fineweb(), "OLMo 3": MinHash.olmo()}
    points: Sequence[Point] = ()
    if options.measured is not None:
        given = options.measured, options.column, options.documents
        texts = texts_in(*given) if options.measured.is_dir() else texts_of(*given)
        points = measured_points(texts, method)
    if options.svg is not None:
        options.svg.write_text(curve_svg(methods, points, method.ratio), "utf-8")
        print(f"wrote {options.svg}", file=sys.stderr)
    for line in curve_lines(methods, points):
        print(line)
    return 0


def _measure_store(options: argparse.Namespace) -> int:
    """Measure the stages of the last result of a store, print and keep what was found; return 0."""
    from curate.deduplication.recall import measured_stages
    from curate.recall import FILE, Recall, write_recall
    from curate.receipts import read_manifest
    from curate.run import open_result

    given = [name for name in ("bands", "rows", "recall", "measured", "svg") if getattr(options, name) is not None]
    if given or options.threshold != THRESHOLD:
        name = given[0] if given else "threshold"
        raise ConfigurationError(f"--store measures what its stages are set to: leave --{name} out")
    if options.pairs < 1:
        raise ConfigurationError(f"--pairs is a number from 1 on: got {options.pairs}")
    store = store_of(options)
    folder = last_result(store)
    result = open_result(store, folder)
    stages = []
    for stage, method, points in measured_stages(result, options.pairs):
        stages.append(stage)
        print(f"{stage.name}: {stage.texts:,} different texts came in")
        for line in curve_lines({"chosen": method}, points, "pairs drawn from these"):
            print(line)
    if not stages:
        raise ConfigurationError(
            f"{store.url('')}: no stage of its last result looks for near duplicates by MinHash, templates among them"
        )
    write_recall(store, Recall(read_manifest(store, folder)["key"], tuple(stages)))
    print(f"wrote {store.url(FILE)}; curate report {options.store} draws it")
    return 0


def _method(options: argparse.Namespace) -> MinHash:
    from transforms.minhash import MinHash

    given = {name: getattr(options, name) for name in ("bands", "rows") if getattr(options, name) is not None}
    try:
        if options.recall is None:
            return MinHash(threshold=options.threshold, **given)
        if given:
            raise ConfigurationError("--recall chooses bands and rows: give either")
        return MinHash.for_recall(options.threshold, options.recall)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def texts_of(path: Path, column: str, most: int) -> pa.LargeStringArray:
    """Return the first `most` texts of a Parquet or JSON-lines file.

    Raises:
        ConfigurationError: it is not there, or has no texts in `column`.
    """
    import pyarrow as pa

    from curate.readers.reader import Reader, declared_columns

    if not path.is_file():
        raise ConfigurationError(f"{path} is not a file: give Parquet or JSON lines")
    kind = "parquet" if path.name.endswith(".parquet") else "jsonl"
    reader = Reader(kind, path.parent, path.name, "curve", declared_columns({"text": column}, "text"))
    texts = list(islice(_texts(path, reader), most))
    if not texts:
        raise ConfigurationError(f"{path} has no texts in {column!r}: name their column with --column")
    return pa.array(texts, pa.large_string())


def texts_in(path: Path, column: str, most: int) -> pa.LargeStringArray:
    """Return the first `most` texts of the first dataset of the last result of a store.

    Raises:
        ConfigurationError: the store has no result, or its documents no texts in `column`.
    """
    import pyarrow as pa

    from curate.run import open_result

    store = Store(path.resolve())
    outputs = list(open_result(store, last_result(store)).outputs.values())
    columns = [name for name, _ in outputs[0].manifest["schema"]] if outputs else []
    if column not in columns:
        raise ConfigurationError(f"{path} has no documents with {column!r}; there is {', '.join(columns) or 'nothing'}")
    texts = (text for batch in outputs[0].batches([column]) for text in batch.column(column).to_pylist() if text)
    return pa.array(list(islice(texts, most)), pa.large_string())


def _texts(path: Path, reader: Reader) -> Iterator[str]:
    from curate.inputs.files import FileUnit
    from curate.readers.events import Read
    from curate.readers.open import read_records

    unit = FileUnit(path.parent, path.name, path.stat().st_size, "")
    with path.open("rb") as file:
        for event in read_records(reader, file, unit):
            if isinstance(event, Read) and (text := event.values.get("text")):
                yield str(text)


def curve_lines(methods: Mapping[str, MinHash], points: Sequence[Point], pairs: str = "all pairs") -> Iterator[str]:
    """Yield the table of probabilities, of `methods` side by side, and the measured points of the first."""
    method = next(iter(methods.values()))
    yield f"{method.bands} bands of {method.rows} rows, threshold {float(method.ratio):g}: two texts become candidates"
    yield "Jaccard  " + "  ".join(f"{f'{name} {m.bands}×{m.rows}':>15}" for name, m in methods.items())
    for similarity in sorted({*SIMILARITIES, float(method.ratio)}):
        row = "  ".join(f"{m.recall(similarity):15.6f}" for m in methods.values())
        yield f"{similarity:7.4g}  {row}"
    if points:
        yield ""
        yield f"measured, {pairs} compared exactly:"
        yield f"{'Jaccard':>15}  {'pairs':>9}  {'candidates':>10}  {'share':>8}  {'expected':>8}  {'std. error':>10}"
    for point in points:
        between = f"{float(point.low):.2f} … {float(point.high):.2f}"
        counts = f"{point.pairs:9,}  {point.candidates:10,}"
        yield f"{between:>15}  {counts}  {point.share:8.4f}  {point.expected:8.4f}  {point.standard_error:10.4f}"
