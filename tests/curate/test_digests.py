"""Content digests see values and nothing of their layout; keys and ids keep their parts apart."""

from __future__ import annotations

import itertools
import os
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from curate import digests
from curate.content_digests import ContentDigest, content_digest, logical_type
from curate.digests import (
    add_sums,
    digest_bytes,
    digest_file,
    digest_json,
    digest_unchanged,
    document_id,
    short,
    sum_digests,
    text_digest,
)
from transforms.schema import BASE

SMALL = pa.schema(
    [
        ("s", pa.string()),
        ("b", pa.binary()),
        ("f", pa.binary(2)),
        ("i", pa.int16()),
        ("t", pa.bool_()),
        ("l", pa.list_(pa.string())),
        ("r", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.int32()))])),
        ("w", pa.timestamp("ms", tz="UTC")),
    ]
)
LARGE = pa.schema(
    [
        ("s", pa.large_string()),
        ("b", pa.large_binary()),
        ("f", pa.binary(2)),
        ("i", pa.int16()),
        ("t", pa.bool_()),
        ("l", pa.large_list(pa.large_string())),
        ("r", pa.struct([("x", pa.int64()), ("y", pa.large_list(pa.int32()))])),
        ("w", pa.timestamp("ms", tz="UTC")),
    ]
)
TEXTS = st.sampled_from(["", "a", "b", "ab", "ä", "\0"])


def or_null(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "s": or_null(TEXTS),
            "b": or_null(st.binary(max_size=2)),
            "f": or_null(st.binary(min_size=2, max_size=2)),
            "i": or_null(st.integers(-2, 2)),
            "t": or_null(st.booleans()),
            "l": or_null(st.lists(or_null(TEXTS), max_size=3)),
            "r": or_null(
                st.fixed_dictionaries(
                    {"x": or_null(st.integers(0, 1)), "y": or_null(st.lists(or_null(st.integers(0, 1)), max_size=2))}
                )
            ),
            "w": or_null(st.sampled_from([datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 5, 1, tzinfo=UTC)])),
        }
    ),
    max_size=6,
)


def batch(rows: list[dict[str, Any]], schema: pa.Schema = SMALL) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema)


@given(rows=ROWS, data=st.data())
def test_content_digest_does_not_see_batches_slices_or_large_types(rows: list[dict[str, Any]], data: Any) -> None:
    expected = content_digest([batch(rows)], SMALL)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    edges = [0, *cuts, len(rows)]
    padded = batch([*rows[:1], *rows, *rows[:1]], LARGE).slice(len(rows[:1]), len(rows))
    for whole, schema in ((batch(rows), SMALL), (batch(rows, LARGE), LARGE), (padded, LARGE)):
        parts = [whole.slice(start, stop - start) for start, stop in itertools.pairwise(edges)]
        assert content_digest(parts, schema) == expected


@given(left=ROWS, right=ROWS)
def test_content_digests_are_equal_for_equal_rows_only(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    same = content_digest([batch(left)], SMALL) == content_digest([batch(right)], SMALL)
    assert same == (left == right)


@settings(max_examples=200)
@given(rows=ROWS.filter(bool), data=st.data())
def test_content_digest_differs_when_one_value_changes(rows: list[dict[str, Any]], data: Any) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    name = data.draw(st.sampled_from(SMALL.names))
    other = data.draw(ROWS.filter(bool))[0][name]
    changed = [{**row, name: other} if number == place else row for number, row in enumerate(rows)]
    same = content_digest([batch(rows)], SMALL) == content_digest([batch(changed)], SMALL)
    assert same == (rows == changed)


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        (pa.string(), ["ab", "c"], ["a", "bc"]),
        (pa.string(), [None], [""]),
        (pa.binary(), [None], [b""]),
        (pa.binary(2), [None], [b"\0\0"]),
        (pa.int64(), [None], [0]),
        (pa.bool_(), [None], [False]),
        (pa.timestamp("ms"), [None], [datetime(1970, 1, 1)]),
        (pa.date32(), [None], [date(1970, 1, 1)]),
        (pa.decimal128(5, 2), [None], [Decimal("0.00")]),
        (pa.decimal128(5, 2), [Decimal("1.20")], [Decimal("1.21")]),
        (pa.float64(), [0.1], [0.1 + 2**-56]),
        (pa.list_(pa.string()), [None], [[]]),
        (pa.list_(pa.string()), [[None]], [[]]),
        (pa.list_(pa.string()), [["a"], ["b", "c"]], [["a", "b"], ["c"]]),
        (pa.list_(pa.string()), [["ab"], ["c"]], [["a"], ["bc"]]),
        (pa.struct([("x", pa.int64())]), [None], [{"x": None}]),
        (pa.struct([("x", pa.int64())]), [{"x": None}], [{"x": 0}]),
        (pa.int64(), [1, 2], [2, 1]),
        (pa.int64(), [1], [1, 1]),
        (pa.int64(), [], [None]),
    ],
)
def test_content_digest_keeps_apart_what_a_careless_one_would_not(kind: pa.DataType, left: Any, right: Any) -> None:
    schema = pa.schema([("c", kind)])
    digests = [
        content_digest([pa.RecordBatch.from_arrays([pa.array(v, kind)], schema=schema)], schema) for v in (left, right)
    ]
    assert digests[0] != digests[1]


def test_content_digest_does_not_see_what_lies_under_a_null() -> None:
    hidden = np.frombuffer(b"hidden", np.uint8)
    valid = pa.py_buffer(b"\x01")
    text = pa.Array.from_buffers(
        pa.string(), 2, [valid, pa.py_buffer(np.array([0, 0, 6], np.int32)), pa.py_buffer(hidden)]
    )
    number = pa.Array.from_buffers(pa.int64(), 2, [valid, pa.py_buffer(np.array([0, 99], np.int64))])
    fixed = pa.Array.from_buffers(pa.binary(3), 2, [valid, pa.py_buffer(b"\0\0\0xyz")])
    items = pa.ListArray.from_arrays(
        pa.array([0, 0, 2], pa.int32()), pa.array(["p", "q"]), mask=pa.array([False, True])
    )
    record = pa.StructArray.from_arrays([pa.array([0, 7])], names=["x"], mask=pa.array([False, True]))
    arrays = [text, number, fixed, items, record]
    plain = [
        pa.array(values, array.type)
        for values, array in zip(
            (["", None], [0, None], [b"\0\0\0", None], [[], None], [{"x": 0}, None]), arrays, strict=True
        )
    ]
    for array, other in zip(arrays, plain, strict=True):
        array.validate(full=True)
        schema = pa.schema([("c", array.type)])
        digests = [content_digest([pa.RecordBatch.from_arrays([a], schema=schema)], schema) for a in (array, other)]
        assert digests[0] == digests[1], array.type


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("b", pa.int64()), ("a", pa.int64())]),
        pa.schema([("a", pa.int64()), ("c", pa.int64())]),
        pa.schema([("a", pa.int64()), ("b", pa.int32())]),
        pa.schema([("a", pa.int64())]),
        pa.schema([("a", pa.int64()), ("b", pa.timestamp("ms"))]),
    ],
)
def test_content_digest_sees_names_types_and_order_of_columns(schema: pa.Schema) -> None:
    plain = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    assert content_digest([], schema) != content_digest([], plain)


def test_content_digest_does_not_see_metadata_or_nullability() -> None:
    plain = pa.schema([pa.field("a", pa.int64())])
    marked = pa.schema([pa.field("a", pa.int64(), nullable=False, metadata={"x": "y"})], metadata={"k": "v"})
    assert content_digest([], plain) == content_digest([], marked)


def test_content_digest_of_known_rows_never_changes() -> None:
    """The digests that datasets publish: a change here breaks every digest that somebody has quoted."""
    rows = [
        {"s": "a", "b": b"\xff", "f": b"xy", "i": -2, "t": True, "l": ["p", None], "r": {"x": 1, "y": [2]}, "w": None},
        {"s": None, "b": None, "f": None, "i": None, "t": None, "l": None, "r": None, "w": datetime(2024, 5, 1)},
    ]
    assert content_digest([batch(rows)], SMALL) == "42492e004f1440794d31680e94625ebf3389f431ad9308b3fd62238b1b0f5cc8"
    assert content_digest([], BASE) == "47ebfb29a33cef51649e6ecdfd3bfe2815611ec2fd294af2613b49e8b76cabf3"


def test_digest_so_far_does_not_end_the_digest() -> None:
    digest = ContentDigest(pa.schema([("a", pa.int64())]))
    part = pa.RecordBatch.from_pydict({"a": [1]})
    before = digest.hexdigest()
    digest.update(part)
    assert digest.hexdigest() == digest.hexdigest() == content_digest([part], part.schema) != before


@pytest.mark.parametrize(
    "kind", [pa.dictionary(pa.int8(), pa.string()), pa.duration("s"), pa.map_(pa.int8(), pa.int8())]
)
def test_column_of_a_type_that_datasets_do_not_hold_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(TypeError, match="are not supported: cast the column"):
        logical_type(kind)


# --- files, keys, ids ------------------------------------------------------------------------------------------------


def test_digest_of_a_file_is_blake3_of_its_bytes(tmp_path: Path) -> None:
    for content in (b"", b"x" * ((4 << 20) + 1)):
        (tmp_path / "f").write_bytes(content)
        assert digest_file(tmp_path / "f") == blake3(content).hexdigest() == digest_bytes(content)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list to which each file is added that is read for its digest, from an empty memory on."""
    read: list[Path] = []
    stream = digests.digest_stream

    def counted(file: Any) -> str:
        read.append(Path(file.name))
        return stream(file)

    monkeypatch.setattr(digests, "digest_stream", counted)
    digests._digest_in_state.cache_clear()
    return read


def wait_for(path: Path) -> None:
    """Return when the last change of a file is longer ago than two changes can have one time."""
    changed = path.stat().st_ctime_ns
    tick = digests.TICK if changed % 1_000_000 else digests.COARSE_TICK
    while time.time_ns() <= changed + tick:
        time.sleep(0.005)


def test_file_is_read_again_only_when_it_has_changed(tmp_path: Path, reads: list[Path]) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"some bytes")
    wait_for(path)
    found = [digest_unchanged(path) for _ in range(3)]
    assert found == [digest_bytes(b"some bytes")] * 3 and len(reads) == 1
    before = path.stat()
    with path.open("r+b") as file:  # as many bytes in the same file, and its time set back
        file.write(b"S")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert [before.st_ino, before.st_size, before.st_mtime_ns] == [after.st_ino, after.st_size, after.st_mtime_ns]
    assert digest_unchanged(path) == digest_bytes(b"Some bytes")
    wait_for(path)
    assert digest_unchanged(path) == digest_unchanged(path) == digest_bytes(b"Some bytes")
    other = tmp_path / "g"
    other.write_bytes(b"other byte")
    os.replace(other, path)
    assert digest_unchanged(path) == digest_bytes(b"other byte")


def test_file_that_may_change_within_one_tick_is_read_each_time(
    tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a")
    changed = path.stat().st_ctime_ns
    for now in (changed - 1, changed, changed + digests.TICK):  # a clock that is behind that of the file system, too
        monkeypatch.setattr(digests.time, "time_ns", lambda now=now: now)
        assert digest_unchanged(path) == digest_unchanged(path) == digest_bytes(b"a")
    assert len(reads) == 6


def test_digest_of_json_does_not_see_the_order_of_keys_and_sees_everything_else() -> None:
    assert digest_json({"a": 1, "b": [1, None]}) == digest_json({"b": [1, None], "a": 1})
    values: list[Any] = [{"a": 1}, {"a": "1"}, {"a": True}, {"a": None}, {"a": [1]}, [{"a": 1}], {"a": {"1": 1}}, {}]
    assert len({digest_json(value) for value in values}) == len(values)


def test_canonical_json_refuses_floats_and_other_keys_at_any_depth() -> None:
    for value in (1.0, {"a": [0.5]}, {"a": {"b": (1, float("nan"))}}):
        with pytest.raises(TypeError, match="no floats"):
            digest_json(value)
    with pytest.raises(TypeError, match="string keys only"):
        digest_json({"a": {1: "x"}})


def test_key_in_paths_is_its_first_sixteen_digits() -> None:
    assert short("0123456789abcdef" * 4) == "0123456789abcdef"


@given(parts=st.lists(st.lists(st.one_of(TEXTS, st.binary(max_size=2), st.integers(0, 12)), min_size=1, max_size=3)))
def test_ids_of_different_natural_keys_differ(parts: list[list[Any]]) -> None:
    distinct = {tuple((type(part), part) for part in key) for key in parts}
    assert len({document_id("source", *[part for _, part in key]) for key in distinct}) == len(distinct)


def test_ids_keep_source_and_key_apart() -> None:
    ids = [document_id("ab", "c"), document_id("a", "bc"), document_id("abc"), document_id("a", "b", "c")]
    assert len(set(ids)) == 4 and {len(identity) for identity in ids} == {16}
    assert document_id("s", b"a", b"b") != document_id("s", b"abytes\0b"), "parts are length-prefixed"
    assert document_id("s", "1") != document_id("s", 1)


def test_id_of_a_known_record_never_changes() -> None:
    """Ids stand in published datasets and ledgers."""
    assert document_id("books", "a.jsonl", "stored", 120, 0).hex() == "2b982ff2ffd19c9626f80160bfd1602b"
    assert document_id("books", b"isbn 1", 0).hex() == "1740d944a6e7e25ea22f1eb8fe855b1f"


def test_text_digest_is_the_beginning_of_blake3_of_utf8() -> None:
    assert text_digest("ä") == blake3(b"\xc3\xa4").digest()[:16]


@given(items=st.lists(st.binary(max_size=3)), data=st.data())
def test_sum_of_digests_names_the_multiset(items: list[bytes], data: Any) -> None:
    assert sum_digests(data.draw(st.permutations(items))) == sum_digests(items)
    cut = data.draw(st.integers(0, len(items)))
    assert add_sums(sum_digests(items[:cut]), sum_digests(items[cut:])) == sum_digests(items)
    if items:
        assert sum_digests([*items, items[0]]) != sum_digests(items) != sum_digests(items[1:])


def test_sum_of_digests_wraps_at_two_to_the_256() -> None:
    assert add_sums("f" * 64, f"{1:064x}") == "0" * 64
