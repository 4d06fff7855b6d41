"""Large files in parts: the records, names and gaps are those of the file read whole, damaged or not."""

from __future__ import annotations

import bz2
import io
import random
from pathlib import Path
from typing import Any

import lz4.frame
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from curate import Outputs, read_jsonl, read_parquet, read_warc
from curate.inputs.files import FileUnit, StatIndex, list_files, open_hashed, units_of
from curate.inputs.splitting import split
from curate.readers.chunks import InputError
from curate.readers.events import End, Event, totals
from curate.readers.open import read_records
from curate.readers.parts import Part
from curate.readers.reader import Reader, declared_columns
from curate.recipes.graph import Dataset
from curate.store import Store
from tests.curate.corpus import run_on
from tests.curate.reading import gzipped, mutated
from tests.curate.test_archives import arc_record
from tests.curate.test_warc import page
from transforms.extraction import ExtractText


def _body(number: int) -> bytes:
    text = random.Random(number).randbytes(100 + 150 * (number % 5)).hex().encode()
    return b"HTTP/1.0 200 OK\r\n\r\n<p>" + text


PAGES = [page(number, 300 + 170 * (number % 7)) for number in range(20)]
ARCS = [arc_record(f"http://e.org/{n}", _body(n)) for n in range(20)]
LINES = [b'{"text":"%d %s"}\n' % (number, random.Random(number).randbytes(40).hex().encode()) for number in range(200)]
PACKS = {"": bytes, ".gz": gzipped, ".zst": zstandard.compress, ".lz4": lz4.frame.compress, ".bz2": bz2.compress}


def reading(kind: str, root: Path, unit_bytes: int) -> Reader:
    columns = declared_columns(None, "text") if kind in ("jsonl", "parquet") else ()
    return Reader(kind, root, "*", "s", columns, unit_bytes=unit_bytes, max_record_bytes=20_000)


def events_of(reader: Reader, unit: FileUnit) -> list[Event]:
    with open_hashed(unit) as file:
        events = list(read_records(reader, file, unit))
    assert all(total == end for total, end in totals(events).values())
    return events


def in_parts(kind: str, path: Path, unit_bytes: int) -> tuple[int, list[Event], list[Event]]:
    """Return how many parts there are, the events of the file read whole, and those of its parts."""
    reader = reading(kind, path.parent, unit_bytes)
    size = path.stat().st_size
    fingerprint, parts = split(reader, lambda: path.open("rb"), path.name, size)
    whole = FileUnit(path.parent, path.name, size, fingerprint)
    units = [FileUnit(path.parent, path.name, p.stop - p.begin.at, fingerprint, part=p) for p in parts] or [whole]
    assert sum(unit.size for unit in units) == size
    return len(parts), events_of(reader, whole), [event for unit in units for event in events_of(reader, unit)]


def same(whole: list[Event], parts: list[Event]) -> None:
    assert [e for e in parts if not isinstance(e, End)] == [e for e in whole if not isinstance(e, End)]
    assert totals(parts) == totals(whole)


def grouped(records: list[bytes], ending: str, chance: random.Random) -> bytes:
    """Return `records` packed, some alone and some together."""
    found, at = [], 0
    while at < len(records):
        count = chance.choice([1, 1, 1, 3])
        found.append(PACKS[ending](b"".join(records[at : at + count])))
        at += count
    return b"".join(found)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst", ".lz4"])
@pytest.mark.parametrize("kind", ["warc", "arc"])
def test_parts_of_archives_give_what_the_whole_gives_damaged_or_not(kind: str, ending: str, tmp_path: Path) -> None:
    chance = random.Random(f"{kind}{ending}")
    path, many = tmp_path / f"a.{kind}{ending}", 0
    for attempt in range(25):
        data = grouped(PAGES if kind == "warc" else ARCS, ending, chance)
        path.write_bytes(mutated(data, chance) if attempt else data)
        count, whole, parts = in_parts("warc", path, chance.randrange(1000, 6000))
        same(whole, parts)
        many += count > 1
    assert many > 10


@pytest.mark.parametrize("ending", list(PACKS))
def test_parts_of_json_lines_give_what_the_whole_gives(ending: str, tmp_path: Path) -> None:
    chance = random.Random(ending)
    path, many = tmp_path / f"a.jsonl{ending}", 0
    for attempt in range(12):
        data = b"".join(LINES)
        step = chance.randrange(500, 3000)  # members begin in the middle of lines
        packed = b"".join(PACKS[ending](data[i : i + step]) for i in range(0, len(data), step))
        path.write_bytes(mutated(packed, chance) if attempt > 5 else packed)
        count, whole, parts = in_parts("jsonl", path, chance.randrange(700, 3000))
        same(whole, parts)
        many += count > 1
    assert many >= 6


def test_one_stream_stays_whole_and_parquet_is_cut_at_row_groups(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzipped(b"".join(LINES)))
    assert in_parts("jsonl", tmp_path / "a.jsonl.gz", 100)[0] == 0
    table = pa.table({"text": [line.decode() for line in LINES]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=30)
    count, whole, parts = in_parts("parquet", tmp_path / "a.parquet", 4000)
    same(whole, parts)
    assert count > 2


def datasets(root: Path, unit_bytes: int) -> list[Dataset]:
    return [
        read_warc(root, "*.warc.gz", source="web", unit_bytes=unit_bytes).apply(ExtractText("resiliparse")),
        read_jsonl(root, "*.jsonl", source="lines", unit_bytes=unit_bytes),
        read_parquet(root, "*.parquet", source="rows", unit_bytes=unit_bytes),
    ]


def test_recipe_gives_the_same_documents_however_its_files_are_cut(tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    (root / "a.warc.gz").write_bytes(b"".join(map(gzipped, PAGES)))
    (root / "b.jsonl").write_bytes(b"".join(LINES))
    pq.write_table(pa.table({"text": [line.decode() for line in LINES]}), root / "c.parquet", row_group_size=30)
    found: list[Any] = []
    for unit_bytes in (1 << 20, 4000):
        outputs = Outputs(**dict(zip("abc", datasets(root, unit_bytes), strict=True)))
        result = run_on(outputs, tmp_path / str(unit_bytes))
        shards = [len(result.outputs[name].shards()) for name in "abc"]
        rows = [[row for batch in result.outputs[name].batches() for row in batch.to_pylist()] for name in "abc"]
        found.append((shards, rows))
    assert found[0][1] == found[1][1]
    assert found[0][0] == [1, 1, 1] and all(count > 1 for count in found[1][0])


def test_part_that_changed_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(LINES))
    reader = reading("jsonl", tmp_path, 5000)
    fingerprint, parts = split(reader, lambda: path.open("rb"), path.name, path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[parts[1].begin.at + 12] ^= 1
    path.write_bytes(content)
    units = [FileUnit(tmp_path, path.name, p.stop - p.begin.at, fingerprint, part=p) for p in parts]
    events_of(reader, units[0])
    with pytest.raises(InputError, match="changed while"):
        events_of(reader, units[1])


def test_parts_are_remembered_and_found_anew_for_other_sizes(tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    (root / "a.jsonl").write_bytes(b"".join(LINES))
    store, reader = Store(tmp_path / "store"), reading("jsonl", root, 5000)
    (file,) = list_files(reader)
    parts = split(reader, lambda: io.BytesIO(b"".join(LINES)), "a.jsonl", file.size)
    StatIndex(store).put_hashed([(file, reader)], [parts])
    known, unknown = units_of(reader, [file], StatIndex(store))
    assert [unit.part for unit in known] == list(parts[1]) and not unknown
    assert all(Part.from_json(part.to_json()) == part for part in parts[1])
    assert units_of(reading("jsonl", root, 4000), [file], StatIndex(store)) == ([], [file])
    assert len(units_of(reading("jsonl", root, 1 << 20), [file], StatIndex(store))[0]) == 1
