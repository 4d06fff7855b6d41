"""Rows of Parquet as columns are the rows that one record at a time would give; long rows are refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate import parquet_batches
from curate.accounting.statistics import merge_all
from curate.parquet_batches import file_batches, open_parquet, value_bytes
from curate.readers.chunks import InputError, chunks_of
from curate.readers.events import Event, Refused, Rows
from curate.readers.parquet import TOO_LARGE, read_parquet_events, read_parquet_records
from curate.readers.reader import Column, Reader, declared_columns

STRINGS = st.one_of(
    st.none(), st.text(max_size=8), st.sampled_from(['a "quote"', "back\\slash", "line\nbreak", "漢字"])
)
COLUMNS: dict[str, Any] = {
    "text": (STRINGS, pa.large_string()),
    "small": (STRINGS, pa.string()),
    "n": (st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)), pa.int32()),
    "ok": (st.one_of(st.none(), st.booleans()), pa.bool_()),
    "when": (st.one_of(st.none(), st.integers(-(10**14), 10**14)), pa.timestamp("ms", "UTC")),
    "score": (st.one_of(st.none(), st.floats(width=32)), pa.float32()),
    "tags": (st.one_of(st.none(), st.lists(STRINGS, max_size=2)), pa.list_(pa.string())),
    "raw": (st.one_of(st.none(), st.binary(max_size=3)), pa.binary()),
    "mixed": (STRINGS, pa.dictionary(pa.int32(), pa.string())),
}
DECLARED: dict[str, str | Column] = {
    "key": "small",
    "n": Column("n", "int64"),
    "fine": Column("ok", "bool"),
    "crawled_at": Column("when", "timestamp"),
    "licence": "mixed",
    "topic": "mixed",
}


def reader_of(columns: dict[str, str | Column] | None = None, **fields: Any) -> Reader:
    return Reader("parquet", Path("/nowhere"), "**/*", "s", declared_columns(columns, "text"), **fields)


def whole(events: list[Event], reader: Reader, rows: int = 4096) -> tuple[Any, ...]:
    """Return all that chunks hold, joined; or the error that they end in."""
    try:
        chunks = list(chunks_of(events, reader, "f.parquet", rows, frozenset({b"0" * 16})))
    except InputError as error:
        return (str(error),)
    table = pa.Table.from_batches([chunk.rows for chunk in chunks])
    losses = sorted((loss for chunk in chunks for loss in chunk.losses), key=lambda loss: loss.ordinal)
    ordinals = [ordinal for chunk in chunks for ordinal in chunk.ordinals.tolist()]
    keys = [row for chunk in chunks for row in chunk.keys.to_pylist()]
    return table.schema, table.to_pylist(), ordinals, losses, merge_all(c.counts for c in chunks), keys


@settings(max_examples=60)
@given(data=st.data())
def test_rows_as_columns_are_the_rows_of_one_record_at_a_time(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    count = data.draw(st.integers(0, 12))
    table = pa.table(
        {
            name: pa.array(data.draw(st.lists(values, min_size=count, max_size=count)), kind)
            for name, (values, kind) in COLUMNS.items()
        }
    )
    path = tmp_path_factory.mktemp("p") / "f.parquet"
    pq.write_table(table, path, row_group_size=5)
    chosen = data.draw(st.sets(st.sampled_from(sorted(DECLARED))))
    reader = reader_of(
        {name: DECLARED[name] for name in sorted(chosen)},
        ignore=tuple(data.draw(st.sets(st.sampled_from(["raw", "tags"])))),
        on_clash=data.draw(st.sampled_from(["error", "place"])),
        max_record_bytes=data.draw(st.sampled_from([12, 1000])),
    )
    columns, records = list(read_parquet_events(path, reader)), list(read_parquet_records(path, reader))
    assert not any(isinstance(event, Rows) for event in records)
    expected = whole(records, reader)
    assert whole(columns, reader) == expected
    assert whole(columns, reader, data.draw(st.integers(1, 4))) == expected


def test_rows_of_simple_columns_stay_columns_and_one_odd_value_only_costs_its_batch(tmp_path: Path) -> None:
    table = pa.table({"text": [f"t{n}" for n in range(12)], "at": pa.array([*range(11), 2**62], pa.int64())})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=4)
    reader = reader_of({"crawled_at": Column("at", "timestamp")})
    events = list(read_parquet_events(tmp_path / "f.parquet", reader))
    assert [(e.offset, e.length) for e in events if isinstance(e, Rows)] == [(0, 4), (4, 4)]
    assert whole(events, reader) == whole(list(read_parquet_records(tmp_path / "f.parquet", reader)), reader)


@pytest.mark.parametrize("further", [False, True])
def test_keyed_rows_as_columns_have_the_digests_of_their_records(tmp_path: Path, further: bool) -> None:
    columns: dict[str, Any] = {"text": ["a", "b", "a", ""], "no": pa.array([1, 2, 1, None]), "n": [None, 5, None, 7]}
    columns |= {"ok": [True, None, True, False], **({"x": [1.5, None, 1.5, 2.5]} if further else {})}
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    reader = reader_of({"key": "no", "n": Column("n", "int64"), "ok": Column("ok", "bool")})
    found = whole(list(read_parquet_events(tmp_path / "f.parquet", reader)), reader)
    assert found == whole(list(read_parquet_records(tmp_path / "f.parquet", reader)), reader)
    assert len(found[5]) == 2 and [loss.reason for loss in found[3]] == ["same record"]


@pytest.mark.parametrize("group", [1, 3, 100])
def test_row_that_is_too_large_is_refused_alone_whatever_its_row_group(tmp_path: Path, group: int) -> None:
    limit = 5000
    texts = ["a", "b" * limit, "c" * (limit + 1), "d", "e" * 10 * limit]
    pq.write_table(pa.table({"text": texts}), tmp_path / "f.parquet", row_group_size=group)
    reader = reader_of(max_record_bytes=limit)
    events = list(read_parquet_events(tmp_path / "f.parquet", reader))
    refused = [(e.offset, e.reason, e.detail) for e in events if isinstance(e, Refused)]
    assert refused == [(2, TOO_LARGE, "more than 5000 bytes"), (4, TOO_LARGE, "more than 5000 bytes")]
    rows = whole(events, reader)[1]
    assert [(row["origin"]["offset"], len(row["text"])) for row in rows] == [(0, 1), (1, limit), (3, 1)]


def test_bytes_of_values_are_those_of_strings_and_binary_at_any_depth() -> None:
    batch = pa.RecordBatch.from_pylist(
        [
            {"t": "é", "b": b"abc", "n": 1, "l": ["x", None, "yz"], "s": {"a": "four", "i": 1}},
            {"t": None, "b": None, "n": None, "l": None, "s": None},
        ]
    )
    assert value_bytes(batch).tolist() == [2 + 3 + 3 + 4, 0]


def test_batches_are_bounded_by_rows_and_by_bytes_and_hold_every_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_batches, "BATCH_BYTES", 10_000)
    draw = random.Random(3)
    texts = [str(n) + "x" * (50_000 if n % 40 == 7 else draw.randrange(200)) for n in range(400)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "f.parquet", row_group_size=150)
    with open_parquet(tmp_path / "f.parquet") as file:
        batches = list(file_batches(file, 64))
    assert [text for batch in batches for text in batch.column("text").to_pylist()] == texts
    assert max(batch.num_rows for batch in batches) <= 64
    assert all(batch.num_rows == 1 or value_bytes(batch).sum() <= 20_000 for batch in batches)
