"""Cutting a large file into parts that are read at once, at borders where reading it whole has one, too.

So a part gives the records that the whole file gives there, under the same names. Borders are found in the first pass,
which hashes the file: JSON lines are cut at line ends (compressed ones where members or frames begin), Parquet at row
groups, web archives where a record begins that has a member of its own. A file of one compressed stream stays whole, as
do other formats. A part has the digest of its own stored bytes, so the task that reads it hashes no more than it reads.

A file of `size` bytes gets a border at the first possible place at or after each multiple of size / n, n being the
number of times that `unit_bytes` fits into it: bytes and configuration decide, never the machine.

Cost: for web archives and compressed JSON lines, one pass of decompression; else some reads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from curate.readers.archives import READ, kind_of, records_of
from curate.readers.compression import Stored, codec_of
from curate.readers.framing import Frame
from curate.readers.parts import Border, Part
from curate.readers.reader import Reader
from curate.readers.window import Window

SPLITTABLE: Final = frozenset({"warc", "wet", "wat", "jsonl", "parquet"})
BLOCK: Final = 1 << 20


def is_large(reader: Reader, size: int) -> bool:
    """Return whether a file of this size is read in parts where that is possible."""
    resolves = getattr(reader.form, "revisits", "count") == "resolve"  # they may refer to any earlier part
    return reader.format in SPLITTABLE and reader.listing is None and size > reader.unit_bytes and not resolves


def split(reader: Reader, open_file: Callable[[], BinaryIO], name: str, size: int) -> tuple[str, tuple[Part, ...]]:
    """Return the digest of a file, and its parts: none where it is read whole."""
    count = -(-size // reader.unit_bytes)
    targets = [size * k // count for k in range(1, count)]
    with open_file() as file:
        borders = _chosen(_borders(reader, file, name, targets), targets)
    with open_file() as file:
        return _digested(file, [Border(0), *borders], size)


def _chosen(candidates: Iterator[Border], targets: Sequence[int]) -> list[Border]:
    """Return, for each target, the first candidate at or after it; each once."""
    found: list[Border] = []
    wanted = iter(targets)
    target = next(wanted, None)
    for border in candidates:
        if target is not None and border.at >= target:
            found.append(border)
            while target is not None and target <= border.at:
                target = next(wanted, None)
    return found


def _borders(reader: Reader, file: BinaryIO, name: str, targets: Sequence[int]) -> Iterator[Border]:
    if reader.format == "parquet":
        return _row_groups(file)
    if reader.format == "jsonl":
        return _lines(file, targets) if codec_of(name) is None else _members(file, name)
    return _records(file, name, reader.max_record_bytes)


def _row_groups(file: BinaryIO) -> Iterator[Border]:
    try:
        metadata = pq.read_metadata(file)
    except (pa.ArrowException, OSError):
        return
    rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(index) for index in range(group.num_columns)]
        starts = [c.dictionary_page_offset or c.data_page_offset for c in columns]
        if number and starts:
            yield Border(min(starts), rows, 0, number)
        rows += group.num_rows


def _lines(file: BinaryIO, targets: Sequence[int]) -> Iterator[Border]:
    """Yield the first line that begins at or after each target."""
    for target in targets:
        at = target - 1
        file.seek(at)
        while block := file.read(BLOCK >> 4):
            found = block.find(b"\n")
            if found >= 0:
                yield Border(at + found + 1)
                break
            at += len(block)


def _members(file: BinaryIO, name: str) -> Iterator[Border]:
    """Yield the first line that begins in each member of the stream."""
    began: list[tuple[int, int]] = []
    stored = Stored(file, name, lambda at, given: began.append((at, given)))
    offset, border = 0, None
    for block in chain.from_iterable(stored.runs()):
        if began:  # the last one gives the block: members before it are empty, or damaged where they begin
            border = began[-1] if began[-1][1] else None
            began.clear()
        found = block.find(b"\n") if border is not None else -1
        if border is not None and found >= 0:
            yield Border(border[0], border[1], offset + found + 1 - border[1])
            border = None
        offset += len(block)


def _records(file: BinaryIO, name: str, max_block: int) -> Iterator[Border]:
    stored = Window(lambda: file.read(READ))
    base = 0
    for placed in records_of(stored, kind_of(stored, name), max_block):
        if placed.place == "stream":
            base += placed.length
        elif placed.offset and isinstance(placed.item, Frame):
            yield Border(placed.offset, base)


def _digested(file: BinaryIO, borders: Sequence[Border], size: int) -> tuple[str, tuple[Part, ...]]:
    whole, digests = blake3(), [blake3() for _ in borders]
    begins = [border.at for border in borders]
    at = 0
    while block := file.read(BLOCK):
        whole.update(block)
        for number in range(max(0, bisect_left(begins, at + 1) - 1), len(begins)):
            begin, end = begins[number], begins[number + 1] if number + 1 < len(begins) else at + len(block)
            if begin >= at + len(block):
                break
            digests[number].update(block[max(begin - at, 0) : max(end - at, 0)])
        at += len(block)
    ends = [*borders[1:], None]
    parts = [
        Part(begin, end, at if end is None else end.at, digest.hexdigest())
        for begin, end, digest in zip(borders, ends, digests, strict=True)
    ]
    return whole.hexdigest(), tuple(parts) if len(parts) > 1 else ()
