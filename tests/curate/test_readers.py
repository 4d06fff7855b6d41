"""JSON lines, Parquet and files: nothing is lost silently, nothing that a file holds raises, ids come from places."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import lz4.frame
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.accounting.statistics import merge_all
from curate.configuration import ConfigurationError
from curate.inputs.files import FileUnit, list_files
from curate.readers import chunks as chunks_module
from curate.readers import compression as compression_module
from curate.readers import files as files_module
from curate.readers import jsonl as jsonl_module
from curate.readers.chunks import chunks_of
from curate.readers.compression import TRIALS
from curate.readers.events import Event, Gap, Read, Refused, Structural, totals
from curate.readers.jsonl import DEEPEST
from curate.readers.open import read_events, read_records
from curate.readers.reader import Column, Reader, declared_columns
from curate.readers.rows import milliseconds


def gzipped(content: bytes, level: int = 9) -> bytes:
    """Compress without the clock: test names and inputs are the same in every process."""
    return gzip.compress(content, level, mtime=0)


ROOT = Path("/nowhere")


def reader_of(format_: str = "jsonl", columns: dict[str, str | Column] | None = None, **fields: Any) -> Reader:
    return Reader(format_, ROOT, "**/*", "s", declared_columns(columns, "text"), **fields)


def events_of(path: Path, reader: Reader) -> list[Event]:
    """Return the events of a file, whose totals must add up."""
    unit = FileUnit(path.parent, path.name, path.stat().st_size, "")
    with path.open("rb") as file:
        events = list(read_records(replace(reader, root=path.parent), file, unit))
    assert all(found == total for found, total in totals(events).values()), totals(events)
    if reader.format == "parquet":
        columns = list(read_events(replace(reader, root=path.parent), io.BytesIO(), unit))
        assert totals(columns) == totals(events)
        assert all_of(columns, reader, path.name) == all_of(events, reader, path.name)
    return events


def all_of(events: Sequence[Event], reader: Reader, path: str, rows: int = 4096) -> tuple[Any, ...]:
    """Return what chunks of `events` hold together: rows, their ordinals, losses, counts, keys."""
    chunks = list(chunks_of(events, reader, path, rows))
    table = pa.Table.from_batches([chunk.rows for chunk in chunks])
    losses = sorted((loss for chunk in chunks for loss in chunk.losses), key=lambda loss: loss.ordinal)
    counts = merge_all(chunk.counts for chunk in chunks)
    ordinals = [ordinal for chunk in chunks for ordinal in chunk.ordinals.tolist()]
    keys = [row for chunk in chunks for row in chunk.keys.to_pylist()]
    return table.schema, table.to_pylist(), ordinals, losses, counts, keys


def read(path: Path, content: bytes, reader: Reader | None = None) -> list[Event]:
    path.write_bytes(content)
    return events_of(path, reader or reader_of())


def texts(events: Sequence[Event]) -> list[Any]:
    return [event.values["text"] for event in events if isinstance(event, Read)]


def losses(events: Sequence[Event]) -> list[tuple[str, int, int, str | None]]:
    return [(e.reason, e.offset, e.length, e.detail) for e in events if isinstance(e, (Refused, Gap))]


def only(events: Sequence[Event]) -> Read:
    (found,) = [event for event in events if isinstance(event, Read)]
    assert not losses(events)
    return found


def rows_of(path: Path, reader: Reader, chunk_rows: int = 4096) -> list[dict[str, Any]]:
    """Return the rows that a file becomes."""
    chunks = chunks_of(events_of(path, reader), reader, path.name, chunk_rows)
    return [row for chunk in chunks for row in chunk.rows.to_pylist()]


# --- lines -----------------------------------------------------------------------------------------------------------

LINES = b'{"text":"one"}\n\n{"text":"zwei \xc3\xa4"}\r\n  \t\n{"text":"three"}'


def test_lines_are_records_and_blank_lines_are_counted(tmp_path: Path) -> None:
    events = read(tmp_path / "f.jsonl", LINES)
    assert texts(events) == ["one", "zwei ä", "three"]
    assert [event.kind for event in events if isinstance(event, Structural)] == ["blank line"] * 2
    assert totals(events) == {"stored": (len(LINES), len(LINES))}


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_lines_do_not_depend_on_the_blocks_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    expected = read(tmp_path / "f.jsonl", LINES)
    packed = read(tmp_path / "f.jsonl.gz", gzipped(LINES))
    for name in ("BLOCK", "FED", "ZSTD_FED"):
        monkeypatch.setattr(compression_module, name, block)
    assert events_of(tmp_path / "f.jsonl", reader_of()) == expected
    assert events_of(tmp_path / "f.jsonl.gz", reader_of()) == packed
    assert texts(read(tmp_path / "f.jsonl.zst", zstandard.compress(LINES))) == texts(expected)


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n \n"])
def test_file_of_no_lines_has_no_records(tmp_path: Path, content: bytes) -> None:
    events = read(tmp_path / "f.jsonl", content)
    assert texts(events) == [] and losses(events) == []


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b'{"text":"a\xffb"}', "not UTF-8", "byte 10 of the line"),
        (b'{"text":"a', "not JSON", None),
        (b'{"text":"a"} x', "not JSON", None),
        (b'{"text":NaN}', "not JSON", None),
        (b'{"text":"a","n":Infinity}', "not JSON", None),
        (b'{"text":"a","n":-Infinity}', "not JSON", None),
        (b'{"text":"a\x01"}', "not JSON", None),
        (b"[1]", "not an object", "list"),
        (b'"text"', "not an object", "str"),
        (b"null", "not an object", "NoneType"),
        (b"{}", "no text", "no string in 'text'"),
        (b'{"text":null}', "no text", "no string in 'text'"),
        (b'{"text":5}', "no text", "no string in 'text'"),
        (b'{"text":1.5}', "no text", "no string in 'text'"),
        (b'{"text":["a"]}', "no text", "no string in 'text'"),
        (b'{"text":"a","n":' + b"1" * 5000 + b"}", "not JSON", None),
        (b'{"text":"a","n":' + b"[" * 300 + b"]" * 300 + b"}", "nested too deep", "more than 200 levels"),
        (b"[" * 300_000, "nested too deep", "more than 200 levels"),
        (b'{"a":' * 300_000, "nested too deep", "more than 200 levels"),
    ],
)
def test_damaged_line_loses_that_line_only(tmp_path: Path, line: bytes, reason: str, detail: str | None) -> None:
    before, after = b'{"text":"before"}\n', b'\n{"text":"after"}\n'
    events = read(tmp_path / "f.jsonl", before + line + after)
    assert texts(events) == ["before", "after"]
    assert losses(events) == [(reason, len(before), len(line) + 1, detail)]


def test_line_nested_as_deep_as_allowed_is_read_and_brackets_in_strings_do_not_count(tmp_path: Path) -> None:
    deep = b"[" * (DEEPEST - 1) + b"]" * (DEEPEST - 1)
    line = b'{"text":"' + b"[{" * 500 + b'\\"[[","n":' + deep + b"}"
    found = only(read(tmp_path / "f.jsonl", line))
    assert found.values["text"] == "[{" * 500 + '"[['
    assert found.values["extra"] == '{"n":' + deep.decode() + "}"
    (loss,) = losses(read(tmp_path / "f.jsonl", line.replace(deep, b"[" + deep + b"]")))
    assert loss[0] == "nested too deep"


def test_chunk_closes_by_bytes_as_well_as_by_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks_module, "CHUNK_BYTES", 1000)
    lines = [json.dumps({"text": f"{n}" * (900 if n % 4 == 0 else 1)}).encode() for n in range(1, 10)]
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"\n".join(lines))
    found = list(chunks_of(events_of(path, reader_of()), reader_of(), path.name))
    sizes = [sum(len(row["text"]) for row in chunk.rows.to_pylist()) for chunk in found]
    assert sum(chunk.rows.num_rows for chunk in found) == 9
    assert len(found) > 1 and max(sizes) < 1000 + 900


@pytest.mark.parametrize("block", [60, 1 << 20])
@pytest.mark.parametrize("size", [99, 100, 101, 5000])
def test_line_above_the_limit_is_refused_with_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, block: int
) -> None:
    monkeypatch.setattr(compression_module, "BLOCK", block)
    line = b'{"text":"' + b"x" * (size - len(b'{"text":""}\n')) + b'"}\n'
    events = read(tmp_path / "f.jsonl", b'{"text":"a"}\n' + line + b'{"text":"b"}', reader_of(max_record_bytes=100))
    assert [text for text in texts(events) if len(text) < 5] == ["a", "b"]
    assert losses(events) == ([] if size <= 100 else [("record too large", 13, size, f"{size} bytes")])


def test_lone_surrogates_become_replacement_characters_and_are_counted(tmp_path: Path) -> None:
    line = rb'{"text":"a\ud800b\ud83d\ude00","\udfff":"\udc00","title":"\ud801\ud802"}'
    path = tmp_path / "f.jsonl"
    reader = reader_of(columns={"title": "title"})
    found = only(read(path, line, reader))
    assert found.values["text"] == "a\ufffdb\U0001f600"
    assert (found.values["title"], found.replaced) == ("\ufffd\ufffd", 5)
    assert json.loads(str(found.values["extra"])) == {"\ufffd": "\ufffd"}
    (chunk,) = chunks_of(events_of(path, reader), reader, path.name)
    assert chunk.counts["s"]["replaced"] == {"lone surrogates": 5}
    chunk.rows.validate(full=True)


def test_mark_of_byte_order_at_the_beginning_of_a_file_is_no_part_of_its_first_line(tmp_path: Path) -> None:
    events = read(tmp_path / "f.jsonl", b'\xef\xbb\xbf{"text":"a"}\n\xef\xbb\xbf{"text":"b"}\n')
    assert texts(events) == ["a"]
    assert [loss[0] for loss in losses(events)] == ["not JSON"]


PIECES = [b'{"text":"x"}\n', b"\n", b"\xff\n", b"{\n"]


@settings(max_examples=150)
@given(content=st.binary(max_size=80), lines=st.lists(st.sampled_from(PIECES)), data=st.data())
def test_any_bytes_are_records_or_recorded_losses(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, lines: list[bytes], data: Any
) -> None:
    whole = b"".join(data.draw(st.permutations([*lines, content])))
    folder = tmp_path_factory.mktemp("any")
    for name in ("f.jsonl", "f.jsonl.gz", "f.jsonl.zst"):
        read(folder / name, whole)
    read(folder / "g.jsonl.gz", gzipped(whole))


# --- compression -----------------------------------------------------------------------------------------------------


def numbered(count: int, first: int = 0) -> bytes:
    draw = random.Random(first)
    return b"".join(b'{"text":"%d %d"}\n' % (n, draw.getrandbits(200)) for n in range(first, first + count))


def frames(*parts: bytes) -> bytes:
    return b"".join(zstandard.ZstdCompressor(write_checksum=True).compress(part) for part in parts)


def members(*parts: bytes) -> bytes:
    return b"".join(gzipped(part) for part in parts)


PACKERS = pytest.mark.parametrize(("name", "pack"), [("f.jsonl.gz", members), ("f.jsonl.zst", frames)])


@PACKERS
def test_compressed_file_of_several_members_is_one_stream(
    tmp_path: Path, name: str, pack: Callable[..., bytes]
) -> None:
    content = numbered(300)
    plain = read(tmp_path / "f.jsonl", content)
    cut = [content[:10], content[10:5000], b"", content[5000:]]  # borders within lines
    events = read(tmp_path / name, pack(*cut))
    assert texts(events) == texts(plain)
    assert [(e.place, e.offset) for e in events if isinstance(e, Read)] == [
        ("stream", e.offset) for e in plain if isinstance(e, Read)
    ]
    assert totals(events) == {"stream": (len(content), len(content))}


@PACKERS
def test_truncated_file_keeps_what_is_readable_and_records_the_rest(
    tmp_path: Path, name: str, pack: Callable[..., bytes]
) -> None:
    content = numbered(2000)
    packed = pack(content[:60_000], content[60_000:])
    whole = [json.loads(line)["text"] for line in content.splitlines()]
    for size in (len(packed) - 1, len(packed) * 3 // 4, len(packed) // 2 + 99, 20, 3):
        events = read(tmp_path / name, packed[:size])
        found = texts(events)
        assert found == whole[: len(found)]
        (gap,) = [event for event in events if isinstance(event, Gap)]
        assert gap.place == "stored" and gap.reason == "truncated"
        if size > len(packed) // 2:
            assert len(found) > 400


@PACKERS
def test_compressed_file_of_no_bytes_is_recorded_as_truncated(
    tmp_path: Path, name: str, pack: Callable[..., bytes]
) -> None:
    assert [(loss[0], loss[2]) for loss in losses(read(tmp_path / name, b""))] == [("truncated", 0)]
    assert losses(read(tmp_path / name, pack(b""))) == []


@PACKERS
def test_damaged_member_costs_its_own_lines_only(tmp_path: Path, name: str, pack: Callable[..., bytes]) -> None:
    content = numbered(3000)
    packed = bytearray(pack(content[:100_000], content[100_000:150_000], content[150_000:]))
    whole = [json.loads(line)["text"] for line in content.splitlines()]
    place = len(pack(content[:100_000])) + 2000
    packed[place : place + 8] = b"\xff" * 8
    events = read(tmp_path / name, bytes(packed))
    found = texts(events)
    behind = content[150_000:].count(b"\n") - 1
    assert found[:1000] == whole[:1000] and found[-behind:] == whole[-behind:] and len(found) < len(whole)
    (gap,) = [event for event in events if isinstance(event, Gap)]
    assert (gap.place, gap.reason) == ("stored", "damaged compression")
    assert gap.offset + gap.length == len(pack(content[:100_000], content[100_000:150_000]))


@pytest.mark.parametrize("pack", [gzipped, zstandard.compress, lz4.frame.compress, bz2.compress])
def test_members_are_found_again_behind_each_damage(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    lines = [json.dumps({"text": f"{number} " * 60}).encode() + b"\n" for number in range(40)]
    packed = [pack(line) for line in lines]
    for number in (3, 17, 18, 39):
        packed[number] = b"\xff" + packed[number][1:]
    name = {gzipped: "f.jsonl.gz", zstandard.compress: "f.jsonl.zst", bz2.compress: "f.jsonl.bz2"}.get(
        pack, "f.jsonl.lz4"
    )
    events = read(tmp_path / name, b"".join(packed))
    assert [int(text.split()[0]) for text in texts(events)] == [n for n in range(40) if n not in (3, 17, 18, 39)]
    starts = [sum(map(len, packed[:number])) for number in (3, 17, 39)]
    sizes = [len(packed[3]), len(packed[17]) + len(packed[18]), len(packed[39])]
    assert [loss[1:3] for loss in losses(events)] == list(zip(starts, sizes, strict=True))


def test_bytes_that_only_look_like_a_member_are_not_read_as_one(tmp_path: Path) -> None:
    line = b'{"text":"' + b"x" * 300 + b'"}\n'
    false = gzipped(b"nothing of the file" * 9)[:-8] + b"12345678"  # its check sum is wrong
    events = read(tmp_path / "f.jsonl.gz", gzipped(line) + b"rubbish" + false + gzipped(line))
    assert len(texts(events)) == 2
    assert [loss[:3] for loss in losses(events)] == [("damaged compression", len(gzipped(line)), 7 + len(false))]


def test_member_behind_many_that_only_look_like_one_is_given_up(tmp_path: Path) -> None:
    false = b"\x1f\x8b\x08\xff"  # flags that nobody may set
    for count, lines in ((TRIALS - 1, 2), (TRIALS, 1)):
        packed = [gzipped(b"{}\n"), b"rubbish" + false * count, gzipped(b"{}\n")]
        events = read(tmp_path / "f.jsonl.gz", b"".join(packed))
        assert len([event for event in events if isinstance(event, (Read, Refused))]) == lines
        (gap,) = [event for event in events if isinstance(event, Gap)]
        assert gap.length == len(packed[1]) + (len(packed[2]) if lines == 1 else 0)


@PACKERS
def test_rubbish_after_the_last_member_is_a_gap(tmp_path: Path, name: str, pack: Callable[..., bytes]) -> None:
    packed = pack(numbered(5))
    events = read(tmp_path / name, packed + b"rubbish and more of it")
    assert len(texts(events)) == 5
    assert [(loss[0], loss[1], loss[2]) for loss in losses(events)] == [("damaged compression", len(packed), 22)]


def test_frame_that_zstd_skips_is_skipped(tmp_path: Path) -> None:
    skippable = (0x184D2A50).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"hello"
    events = read(tmp_path / "f.jsonl.zst", skippable + frames(numbered(3)) + skippable)
    assert len(texts(events)) == 3 and losses(events) == []


def test_plain_file_with_a_compressed_name_is_a_gap_and_a_compressed_one_with_a_plain_name_is_no_json(
    tmp_path: Path,
) -> None:
    events = read(tmp_path / "f.jsonl.gz", LINES)
    assert losses(events) == [("damaged compression", 0, len(LINES), "gzip")]
    events = read(tmp_path / "f.jsonl", gzipped(LINES))
    assert {loss[0] for loss in losses(events)} <= {"not UTF-8", "not JSON"} and not texts(events)


def test_compression_bomb_is_read_within_a_line_limit(tmp_path: Path) -> None:
    bomb = gzipped(b'{"text":"' + b" " * (80 << 20) + b'"}\n' + b'{"text":"after"}\n')
    assert len(bomb) < 200_000
    events = read(tmp_path / "f.jsonl.gz", bomb, reader_of(max_record_bytes=1 << 20))
    assert texts(events) == ["after"]
    assert [loss[0] for loss in losses(events)] == ["record too large"]


# --- columns ---------------------------------------------------------------------------------------------------------

COLUMNS: dict[str, str | Column] = {
    "text": "body",
    "n": Column("n", "int64"),
    "flag": Column("flag", "bool"),
    "title": "title",
    "crawled_at": "when",
}


@pytest.mark.parametrize(
    ("name", "column", "good", "stored"),
    [
        ("n", "n", "5", 5),
        ("n", "n", "null", None),
        ("n", "n", str(2**63 - 1), 2**63 - 1),
        ("flag", "flag", "true", True),
        ("title", "title", '"x"', "x"),
        ("title", "title", "0.10", "0.10"),
        ("crawled_at", "when", '"2024-05-01T12:00:00.250Z"', 1_714_564_800_250),
    ],
)
def test_value_of_the_declared_type_fills_its_column(
    tmp_path: Path, name: str, column: str, good: str, stored: Any
) -> None:
    found = only(read(tmp_path / "f.jsonl", f'{{"body":"x","{column}":{good}}}'.encode(), reader_of(columns=COLUMNS)))
    assert (found.values.get(name), found.values["extra"]) == (stored, None)


@pytest.mark.parametrize(
    ("name", "column", "bad"),
    [
        ("n", "n", "2.5"),
        ("n", "n", '"5"'),
        ("n", "n", "true"),
        ("n", "n", str(2**63)),
        ("n", "n", "[1]"),
        ("flag", "flag", "1"),
        ("title", "title", "5"),
        ("title", "title", '{"a":1}'),
        ("crawled_at", "when", '"yesterday"'),
        ("crawled_at", "when", '"2024-02-30"'),
        ("crawled_at", "when", "{}"),
        ("crawled_at", "when", str(2**70)),
        ("crawled_at", "when", "true"),
    ],
)
def test_value_of_another_type_than_declared_survives_in_extra(
    tmp_path: Path, name: str, column: str, bad: str
) -> None:
    path = tmp_path / "f.jsonl"
    reader = reader_of(columns=COLUMNS)
    lines = f'{{"body":"a","{column}":null}}\n{{"body":"x","{column}":{bad}}}\n'
    path.write_bytes(lines.encode())
    rows = rows_of(path, reader)
    assert [row["text"] for row in rows] == ["a", "x"]
    assert rows[1][name] is None
    expected = json.loads(bad, parse_float=str)
    assert json.loads(rows[1]["extra"]) == {column: expected}


def test_columns_that_nobody_declared_survive_as_canonical_json(tmp_path: Path) -> None:
    line = b'{"z":1.50,"text":"x","a":{"c":[1,null,true],"b":"\xc3\xa4"},"skip":1}'
    found = only(read(tmp_path / "f.jsonl", line, reader_of(ignore=("skip",))))
    assert found.values["extra"] == '{"a":{"b":"ä","c":[1,null,true]},"z":"1.50"}'


def test_null_or_missing_first_row_fixes_no_type_and_a_later_column_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b'{"text":"a","n":null}\n{"text":"b","n":7,"late":1}\n{"text":"c"}\n{"text":"d","n":1.5}\n')
    rows = rows_of(path, reader_of(columns={"n": Column("n", "int64")}), chunk_rows=1)
    assert [row["n"] for row in rows] == [None, 7, None, None]
    assert [row["extra"] for row in rows] == [None, '{"late":1}', None, '{"n":"1.5"}']


def test_key_is_a_string_or_a_whole_number_and_anything_else_is_none(tmp_path: Path) -> None:
    keys = ['"a"', "5", '"5"', "null", "true", "1.5", "[1]", r'"\ud800"', r'"\ud801"', '""']
    lines = "".join(f'{{"text":"x","k":{key}}}\n' for key in keys)
    events = read(tmp_path / "f.jsonl", lines.encode(), reader_of(columns={"key": "k"}))
    found = [event.key for event in events if isinstance(event, Read)]
    assert found[:6] == [b"a", b"5", b"5", None, None, b"1.5"]
    assert found[6] is None and found[7] != found[8] and found[9] == b""


def test_rights_come_from_columns_or_from_the_user(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b'{"text":"a","l":"MIT"}\n{"text":"b","l":null}\n')
    rows = rows_of(path, reader_of(columns={"licence": "l"}))
    assert [(row["licence"], row["licence_basis"]) for row in rows] == [("MIT", "source"), ("unknown", "unknown")]
    rows = rows_of(path, reader_of(licence="CC0-1.0"))
    assert [(row["licence"], row["licence_basis"]) for row in rows] == [("CC0-1.0", "user")] * 2
    assert rows[0]["optout"] == dict.fromkeys(("robots_txt", "robots_meta", "tdm"), "not checked")


@pytest.mark.parametrize(("name", "kind"), [("text", "int64"), ("licence", "bool"), ("crawled_at", "string")])
def test_own_column_declared_with_another_type_is_refused(name: str, kind: str) -> None:
    with pytest.raises(ConfigurationError, match=f"column '{name}' is a .*, not {kind}"):
        reader_of(columns={name: Column("c", kind)})


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("1970-01-01", 0),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01 00:00:01", 1000),
        ("1970-01-01T00:00", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T20:00:00-0400", 0),
        ("1970-01-01T00:00:00.123456789Z", 123),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0001-01-01T00:00:00+14:00", -62_135_596_800_000 - 14 * 3_600_000),
        (datetime(1970, 1, 1, 0, 0, 1), 1000),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (date(1970, 1, 2), 86_400_000),
        (5, 5),
        (True, None),
        ("١٩٧٠-01-01", None),
        ("1970-01-01T24:00:00", None),
        ("1970-01-01T00:00:00+99:00", None),
        ("1970-1-1", None),
        (" 1970-01-01", None),
        (None, None),
        (1.5, None),
        (b"1970-01-01", None),
        (10**17, None),
    ],
)
def test_time_is_milliseconds_since_1970_or_nothing(item: Any, expected: int | None) -> None:
    assert milliseconds(item) == expected


# --- ids -------------------------------------------------------------------------------------------------------------


def ids(path: Path, reader: Reader) -> list[bytes]:
    return [row["id"] for row in rows_of(path, reader)]


def test_ids_come_from_places_and_do_not_move_when_other_lines_change(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    lines = [b'{"text":"aaaa"}\n', b'{"text":"bbbb"}\n', b'{"text":"cccc"}\n', b'{"text":"dddd"}\n']
    path.write_bytes(b"".join(lines))
    before = ids(path, reader_of())
    assert len(set(before)) == 4
    for other, kept in (
        ([b'{"text":""    }\n', *lines[1:]], before),  # a text becomes empty
        ([b" " * 15 + b"\n", *lines[1:]], before[1:]),  # a line becomes blank
        ([b"x" * 15 + b"\n", *lines[1:]], before[1:]),  # a line becomes rubbish
        (lines[:2], before[:2]),  # lines at the end go
        ([*lines, b'{"text":"more"}'], before),
    ):
        path.write_bytes(b"".join(other))
        assert ids(path, reader_of())[: len(kept)] == kept


def test_ids_differ_between_sources_paths_and_places_and_not_between_texts(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_bytes(b'{"text":"x"}\n{"text":"x"}\n')
    second.write_bytes(b'{"text":"y"}\n{"text":"x"}\n')
    found = [*ids(first, reader_of()), *ids(second, reader_of()), *ids(first, replace(reader_of(), source="t"))]
    assert len(set(found)) == 6
    second.rename(first)
    assert ids(first, reader_of()) == found[:2]


def test_ids_of_a_keyed_source_do_not_move_at_all(tmp_path: Path) -> None:
    reader = reader_of(columns={"key": "k"})
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_bytes(b'{"text":"x","k":"1"}\n{"text":"y","k":"2"}\n')
    second.write_bytes(b'\n\n{"text":"new","k":"2"}\n{"text":"x","k":"1"}\n')
    assert ids(first, reader) == ids(second, reader)[::-1]


@pytest.mark.parametrize("chunk_rows", [1, 2, 3, 100])
def test_rows_and_losses_do_not_depend_on_chunks(tmp_path: Path, chunk_rows: int) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"".join(b'{"text":"%d"}\n' % n if n % 3 else b"rubbish\n" for n in range(20)))
    whole = list(chunks_of(events_of(path, reader_of()), reader_of(), path.name))
    parts = list(chunks_of(events_of(path, reader_of()), reader_of(), path.name, chunk_rows))
    assert len(whole) == 1 and len(parts) > (1 if chunk_rows < 20 else 0)
    assert [row for part in parts for row in part.rows.to_pylist()] == whole[0].rows.to_pylist()
    assert [loss for part in parts for loss in part.losses] == whole[0].losses
    assert [n for part in parts for n in part.ordinals.tolist()] == whole[0].ordinals.tolist()


# --- Parquet ---------------------------------------------------------------------------------------------------------


def parquet(path: Path, table: pa.Table, reader: Reader | None = None, group: int = 2) -> list[Event]:
    pq.write_table(table, path, row_group_size=group)
    return events_of(path, reader or reader_of("parquet"))


def test_parquet_rows_are_records_and_undeclared_columns_survive(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": ["a", None, "", "d"],
            "n": pa.array([1, None, 3, 2**40], pa.int64()),
            "tags": pa.array([["x", None], None, [], ["y"]]),
            "score": [0.5, float("nan"), None, 2.0],
            "raw": pa.array([b"\xff", None, b"", b"a"]),
            "id": ["own", "ids", "may", "be"],
        }
    )
    reader = reader_of("parquet", columns={"n": Column("n", "int64")}, ignore=("raw",))
    events = parquet(tmp_path / "f.parquet", table, reader)
    assert texts(events) == ["a", "", "d"]
    assert losses(events) == [("no text", 1, 1, "no string in 'text'")]
    assert totals(events) == {"row": (4, 4)}
    assert [event.values.get("n") for event in events if isinstance(event, Read)] == [1, 3, 2**40]
    extras = [json.loads(str(event.values["extra"])) for event in events if isinstance(event, Read)]
    assert extras[0] == {"tags": ["x", None], "score": "0.5", "id": "own"}
    assert extras[1] == {"tags": [], "score": None, "id": "may"}


def test_parquet_ids_come_from_row_numbers(tmp_path: Path) -> None:
    path, reader = tmp_path / "f.parquet", reader_of("parquet")
    parquet(path, pa.table({"text": ["a", "b", "c"]}))
    before = ids(path, reader)
    parquet(path, pa.table({"text": [None, "", "c", "d"]}), group=3)
    assert ids(path, reader)[:2] == before[1:]
    assert len(set(before)) == 3


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1], pa.timestamp("ns")),
        pa.array([2**62], pa.timestamp("ms")),
        pa.array([-(2**62)], pa.timestamp("us", tz="UTC")),
        pa.array([1], pa.timestamp("s", tz="America/New_York")),
        pa.array([2**30], pa.date32()),
        pa.array([1], pa.time64("ns")),
        pa.array([7], pa.duration("ns")),
        pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())),
        pa.array([{"a": 1.5, "b": None}]),
        pa.array(["x"]).dictionary_encode(),
        pa.array([None], pa.null()),
        pa.array([1], pa.decimal128(5, 2)),
        pa.array([1.5], pa.float16()),
    ],
    ids=lambda array: str(array.type),
)
@pytest.mark.parametrize("declared", [None, "timestamp", "string", "int64"])
def test_parquet_column_of_any_type_takes_nothing_down(tmp_path: Path, array: pa.Array, declared: str | None) -> None:
    columns = {} if declared is None else {"c": Column("c", declared)}
    path, reader = tmp_path / "f.parquet", reader_of("parquet", columns=columns)
    events = parquet(path, pa.table({"text": ["x"], "c": array}), reader)
    assert texts(events) == ["x"]
    (row,) = rows_of(path, reader)
    assert array.null_count or (row.get("c") is not None) != (row["extra"] is not None)


def test_parquet_times_in_extra_are_utc_and_complete(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": ["x"],
            "ns": pa.array([1], pa.timestamp("ns")),
            "zone": pa.array([0], pa.timestamp("s", tz="America/New_York")),
            "day": pa.array([1], pa.date32()),
        }
    )
    found = only(parquet(tmp_path / "f.parquet", table))
    assert json.loads(str(found.values["extra"])) == {
        "ns": "1970-01-01 00:00:00.000000001", "zone": "1970-01-01 00:00:00.000Z", "day": "1970-01-02",
    }  # fmt: skip


def test_parquet_time_fills_crawled_at(tmp_path: Path) -> None:
    moment = datetime(2024, 5, 1, 12, tzinfo=UTC)
    path, reader = tmp_path / "f.parquet", reader_of("parquet", columns={"crawled_at": "c"})
    for array in (
        pa.array([moment], pa.timestamp("us", tz="UTC")),
        pa.array([moment.replace(tzinfo=None)], pa.timestamp("ns")),
        pa.array(["2024-05-01T12:00:00Z"]),
    ):
        parquet(path, pa.table({"text": ["x"], "c": array}), reader)
        assert [row["crawled_at"] for row in rows_of(path, reader)] == [moment]


def test_parquet_row_that_is_not_utf8_is_refused_alone(tmp_path: Path) -> None:
    offsets = pa.py_buffer(bytes([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]))
    bad = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"a\xffc")])
    events = parquet(tmp_path / "f.parquet", pa.table({"text": bad}), group=3)
    assert texts(events) == ["a", "c"]
    assert losses(events) == [("not UTF-8", 1, 1, None)]


def test_damaged_row_group_is_a_gap_of_its_rows_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    table = pa.table({"text": [f"{n} " * 400 for n in range(9)]})
    pq.write_table(table, path, row_group_size=3, compression="zstd", use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(1).column(0)
    content = bytearray(path.read_bytes())
    start = column.data_page_offset
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)
    events = events_of(path, reader_of("parquet"))
    assert [text.split()[0] for text in texts(events)] == ["0", "1", "2", "6", "7", "8"]
    assert losses(events) == [("damaged row group", 3, 3, None)]


@pytest.mark.parametrize("cut", [0, 3, 50, -1, -9])
def test_file_that_is_no_parquet_is_one_gap_that_says_nothing_of_the_machine(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "f.parquet"
    parquet(path, pa.table({"text": ["a"]}))
    content = path.read_bytes()[:cut]
    events = read(path, content, reader_of("parquet"))
    assert losses(events) == [("not Parquet", 0, len(content), None)]


def test_parquet_file_of_no_rows_has_none(tmp_path: Path) -> None:
    events = parquet(tmp_path / "f.parquet", pa.table({"text": pa.array([], pa.string())}))
    assert texts(events) == [] and losses(events) == []


@settings(max_examples=60)
@given(place=st.floats(0, 1), flip=st.integers(1, 255))
def test_parquet_file_with_any_byte_flipped_raises_nothing(
    tmp_path_factory: pytest.TempPathFactory, place: float, flip: int
) -> None:
    path = tmp_path_factory.mktemp("flip") / "f.parquet"
    parquet(path, pa.table({"text": [f"text {n}" for n in range(50)], "n": list(range(50))}), group=10)
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] ^= flip
    read(path, bytes(content), reader_of("parquet"))


# --- files -----------------------------------------------------------------------------------------------------------


def test_file_is_one_document_decoded(tmp_path: Path) -> None:
    for content, text in ((b"", ""), ("\ufeffhä".encode(), "hä"), (b"caf\xe9", "café")):
        events = read(tmp_path / "f.txt", content, reader_of("files"))
        assert only(events).values["text"] == text
        assert totals(events) == ({"stored": (len(content), len(content))})


@pytest.mark.parametrize("size", [10, 11, 500])
def test_file_above_the_limit_is_refused_with_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(files_module, "BLOCK", 7)
    events = read(tmp_path / "f.txt", b"x" * size, reader_of("files", max_record_bytes=10))
    assert losses(events) == ([] if size <= 10 else [("record too large", 0, size, f"{size} bytes")])


def test_files_are_listed_by_the_bytes_of_their_paths_below_the_root(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a.txt", "ä.txt", "Z.txt", "a/b/c.txt", "skip.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "folder.txt").mkdir()
    reader = replace(reader_of("files"), root=tmp_path, pattern="**/*.txt")
    assert [file.path for file in list_files(reader)] == ["Z.txt", "a.txt", "a/b/c.txt", "a/z.txt", "b.txt", "ä.txt"]


def test_file_name_that_is_not_utf8_is_an_error_before_any_work(tmp_path: Path) -> None:
    try:
        (tmp_path / "bad\udcff.txt").write_text("x")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    with pytest.raises(ConfigurationError, match=r"bad\\udcff\.txt.*UTF-8"):
        list_files(replace(reader_of("files"), root=tmp_path, pattern="*.txt"))


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":[1,-0,18446744073709551615,true,null,"\\u00e9\\ud83d\\ude00"],"a":2}',
        b'{"a":1.50}',
        b'{"a":[[1e5]]}',
        b'{"a":18446744073709551616}',
        b'{"a":"\\ud800"}',
        b'{"a":NaN}',
        b'{"a":1,}',
        b'{"a":"\x01"}',
        b"\xff",
        b"",
        b'\xef\xbb\xbf{"a":1}',
        b' {"a" : 1 } \r\n',
        b'{"a":1} x',
        b"[" * 300,
        b"[" * 150 + b"]" * 150,
    ],
)
def test_json_reads_the_same_with_and_without_orjson(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:

    def outcome() -> object:
        try:
            return repr(jsonl_module.parse_json(content))
        except ValueError as error:
            return type(error), "" if isinstance(error, UnicodeDecodeError) else str(error)

    with_it = outcome()
    monkeypatch.setattr(jsonl_module, "_quickly", lambda content: None)
    assert outcome() == with_it
