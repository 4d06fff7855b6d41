"""What the engine costs per document: Parquet of text through a transform that changes nothing, beside a plain loop.

Texts are made up: words of a seeded vocabulary drawn by Zipf's law, so that zstd finds about as much in them as in
English. The plain loop is pyarrow in one process: batches in, row groups of the same logical bytes out at zstd 3, and
BLAKE3 over the bytes of the input file, the bytes of the output file and the texts. The engine does what it always
does: ids, origins, a digest of each text, statistics, samples, the check that nothing was lost, the commit. Runs are
interleaved, and the best of each way counts. Every way is one thread that waits for nothing but memory: what it costs
are seconds of the processor. Those of the clock, which all else on the machine stretches, are told beside them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from curate import Dataset, Outputs, read_jsonl, read_parquet
from curate.run import Result, run
from curate.writer import ROW_GROUP_BYTES
from transforms.outcome import Outcome, kept

MOST: Final = 1.35
"""Engine seconds per second of the plain loop, at `LENGTH` bytes a document."""

LENGTH: Final = 3000
LENGTHS: Final = (300, 3000, 100_000)
VOCABULARY: Final = 50_000
POOL_WORDS: Final = 4_000_000
READ: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Nothing:
    """A transform that keeps every document as it is."""

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`."""
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep all rows."""
        return kept(batch)


def pool(seed: int) -> bytes:
    """Return about 25 MB of words drawn by Zipf's law; a data page of Parquet sees no stretch of it twice."""
    draw = np.random.default_rng(seed)
    letters = np.frombuffer(b"etaoinshrdlucmfwypvbgkjqxz", np.uint8)
    chances = 1 / np.arange(2.0, 28.0)
    lengths = np.minimum(12, 2 + draw.geometric(0.24, VOCABULARY))
    words = [draw.choice(letters, int(n), p=chances / chances.sum()).tobytes() for n in lengths]
    ranks = 1 / np.arange(1.0, VOCABULARY + 1)
    chosen = draw.choice(VOCABULARY, POOL_WORDS, p=ranks / ranks.sum())
    return b" ".join([words[i] for i in chosen.tolist()])


def texts(total: int, length: int, seed: int = 1) -> pa.LargeStringArray:
    """Return texts of `length` bytes, half to one and a half times as many, `total` bytes together."""
    content, draw = pool(seed), np.random.default_rng(seed + 1)
    count = max(1, total // length)
    sizes = draw.integers(length // 2, length + length // 2, count)
    starts = draw.integers(0, len(content) - 2 * length, count)
    return pa.array(
        [f"{n} ".encode() + content[i : i + k] for n, (i, k) in enumerate(zip(starts, sizes, strict=True))],
        pa.large_binary(),
    ).cast(pa.large_string())


def write_input(root: Path, total: int, length: int, format_: str, named: bool) -> Path:
    """Write one file of texts, with a column of ids that nobody declares where `named`."""
    root.mkdir(parents=True)
    columns: dict[str, Any] = {"text": texts(total, length)}
    if named:
        columns["id"] = [f"document-{n:09d}" for n in range(len(columns["text"]))]
    table = pa.table(columns)
    if format_ == "parquet":
        path = root / "a.parquet"
        rows = max(1, ROW_GROUP_BYTES // length)
        pq.write_table(table, path, row_group_size=rows, compression="zstd", compression_level=3, use_dictionary=False)
    else:
        path = root / "a.jsonl"
        with path.open("wb") as file:
            for text in table.column("text"):
                file.write(b'{"text":"' + text.as_py().encode() + b'"}\n')
    return path


def through_engine(read: Callable[..., Dataset], path: Path, store: Path) -> Result:
    """Read the way anybody does, change nothing, commit the dataset."""
    with open("/dev/null", "w") as nowhere, redirect_stderr(nowhere):
        return run(Outputs(read(path.parent, source="s").apply(Nothing(), name="same")), store, runner="local")


def through_pyarrow(path: Path, target: Path) -> int:
    """Read, hash, write, hash with pyarrow and BLAKE3 alone; return the rows."""
    digests = [blake3(), blake3(), blake3()]
    hash_file(path, digests[0])
    rows, held, pending = 0, 0, list[pa.RecordBatch]()
    with pq.ParquetFile(path) as file:
        how: dict[str, Any] = {"compression": "zstd", "compression_level": 3, "use_dictionary": False}
        with pq.ParquetWriter(target, file.schema_arrow, **how) as writer:
            for batch in file.iter_batches(batch_size=4096, use_threads=False):
                hash_column(batch.column("text"), digests[2])
                pending.append(batch)
                held += batch.nbytes
                rows += batch.num_rows
                if held >= ROW_GROUP_BYTES:
                    write_group(writer, pending)
                    held, pending = 0, []
            if pending:
                write_group(writer, pending)
    hash_file(target, digests[1])
    return rows


def write_group(writer: pq.ParquetWriter, batches: list[pa.RecordBatch]) -> None:
    """Write `batches` as one row group."""
    table = pa.Table.from_batches(batches)
    writer.write_table(table, row_group_size=table.num_rows)


def hash_file(path: Path, digest: blake3) -> None:
    """Add the bytes of a file to `digest`."""
    buffer = bytearray(READ)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(memoryview(buffer)[:count])


def hash_column(array: pa.Array, digest: blake3) -> None:
    """Add the bytes of a column of strings to `digest`."""
    _, offsets, data = array.buffers()
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    bounds = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
    digest.update(memoryview(data)[int(bounds[0]) : int(bounds[-1])])


def through_datatrove(path: Path, target: Path) -> int:
    """Read and write with datatrove, one task, no filter; return the rows written."""
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.writers import ParquetWriter
    from datatrove.utils.logging import logger

    logger.remove()
    written = ParquetWriter(str(target / "out"), compression="zstd")
    pipeline = [ParquetReader(str(path.parent), doc_progress=False), written]
    with open("/dev/null", "w") as nowhere, redirect_stderr(nowhere):
        LocalPipelineExecutor(pipeline, logging_dir=str(target / "logs"), skip_completed=False).run()
    return sum(pq.read_metadata(file).num_rows for file in (target / "out").glob("*.parquet"))


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of a way through: of the clock and of the processor."""

    wall: float
    cpu: float


def timed(way: Callable[[Path], object], target: Path) -> Took:
    """Return what `way` takes; what it writes to `target` is thrown away."""
    wall, cpu = time.perf_counter(), time.process_time()
    way(target)
    took = Took(time.perf_counter() - wall, time.process_time() - cpu)
    shutil.rmtree(target, ignore_errors=True)
    target.unlink(missing_ok=True)
    return took


def interleaved(ways: Mapping[str, Callable[[Path], object]], work: Path, repeats: int) -> dict[str, Took]:
    """Return the best of `repeats` runs of each way; a first run of each, which compiles and warms, does not count."""
    found: dict[str, list[Took]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, way in ways.items():
            took = timed(way, work / f"{name}-{turn}")
            if turn:
                found[name].append(took)
    return {name: Took(min(t.wall for t in took), min(t.cpu for t in took)) for name, took in found.items()}


def measure(
    work: Path, total: int, length: int, format_: str, named: bool, peers: bool, repeats: int
) -> dict[str, Any]:
    """Return seconds, µs per document and ratios for one kind of input."""
    path = write_input(work / f"{format_}-{length}-{named}", total, length, format_, named)
    read = read_parquet if format_ == "parquet" else read_jsonl
    ways: dict[str, Callable[[Path], object]] = {"curate": partial(through_engine, read, path)}
    if format_ == "parquet":
        ways["pyarrow"] = partial(through_pyarrow, path)
    if peers and format_ == "parquet":
        ways["datatrove"] = partial(through_datatrove, path)
    took = interleaved(ways, work, repeats)
    count = total // length
    found: dict[str, Any] = {
        "documents": count,
        "stored bytes per byte of text": round(path.stat().st_size / total, 3),
        "µs of processor per document": {name: round(t.cpu / count * 1e6, 2) for name, t in took.items()},
        "seconds": {name: round(t.wall, 2) for name, t in took.items()},
        "processor seconds": {name: round(t.cpu, 2) for name, t in took.items()},
    }
    if "pyarrow" in took:
        found["ratio"] = round(took["curate"].cpu / took["pyarrow"].cpu, 3)
        found["ratio by the clock"] = round(took["curate"].wall / took["pyarrow"].wall, 3)
    shutil.rmtree(path.parent)
    return found


@dataclass(frozen=True, slots=True)
class StreamSize:
    """Bytes of text of the input that is checked, and of the others; runs of each way."""

    total: int
    further: int
    repeats: int


STREAM_SIZES: Final = {
    "small": StreamSize(400_000_000, 30_000_000, 2),
    "full": StreamSize(1_000_000_000, 150_000_000, 2),
}


def stream_report(work: Path, size: StreamSize, peers: bool) -> dict[str, Any]:
    """Return what `measure` finds of each kind of input; the first is the one that is checked."""
    report = {f"{LENGTH} B": measure(work, size.total, LENGTH, "parquet", False, peers, size.repeats)}
    kinds = [
        (length, "parquet", named)
        for length in LENGTHS
        for named in (False, True)
        if (length, named) != (LENGTH, False)
    ]
    for length, format_, named in [*kinds, *((length, "jsonl", False) for length in LENGTHS)]:
        name = f"{length} B" + (", with ids" if named else "") + (", JSONL" if format_ == "jsonl" else "")
        report[name] = measure(work, size.further, length, format_, named, False, 1)
    return report
