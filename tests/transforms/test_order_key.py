from __future__ import annotations

import datetime
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.duplicates import text_digests
from transforms.order_key import OrderBy, encode_column, group_hashes, order_by, order_keys
from transforms.outcome import SchemaError

UTC = datetime.UTC
INSTANTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)).map(
    lambda t: t.replace(tzinfo=UTC)
)
COLUMNS = {
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "boolean": (pa.bool_(), st.booleans()),
    "string": (pa.string(), st.text(st.sampled_from("\0a\u00ffb\U0001f600\uffff"), max_size=4)),
    "large string": (pa.large_string(), st.text(max_size=3)),
    "binary": (pa.binary(), st.binary(max_size=3) | st.sampled_from([b"", b"\0", b"\0\0", b"\0\xff", b"\xff"])),
    "fixed binary": (pa.binary(2), st.binary(min_size=2, max_size=2)),
    "decimal": (pa.decimal128(20, 3), st.decimals(-(10**6), 10**6, places=3, allow_nan=False)),
    "small decimal": (pa.decimal32(5, 2), st.decimals(-99, 99, places=2, allow_nan=False)),
    "float": (pa.float64(), st.floats(allow_nan=False)),
    "timestamp": (pa.timestamp("us", "UTC"), INSTANTS),
    "date": (pa.date32(), st.dates()),
}


def compare(left: tuple[Any, ...], right: tuple[Any, ...], descending: list[bool]) -> int:
    """Compare rows the slow way: nulls last, Python's own order of values."""
    for a, b, down in zip(left, right, descending, strict=True):
        if a == b:
            continue
        if a is None or b is None:
            return 1 if a is None else -1
        return -1 if (a < b) != down else 1
    return 0


def batch(**columns: pa.Array) -> pa.RecordBatch:
    count = len(next(iter(columns.values())))
    base = {
        "id": pa.array([i.to_bytes(16, "big") for i in range(count)], pa.binary(16)),
        "text": pa.array(["same"] * count, pa.large_string()),
        "source": pa.array(["web"] * count, pa.large_string()),
    }
    return pa.RecordBatch.from_pydict(base | columns)


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("descending", [False, True])
@settings(max_examples=40)
@given(data=st.data())
def test_encoded_column_of_any_type_sorts_as_python_does(kind: str, descending: bool, data: st.DataObject) -> None:
    arrow, values = COLUMNS[kind]
    rows = data.draw(st.lists(values | st.none(), max_size=12))
    keys = encode_column(pa.array([None, *rows, None], arrow).slice(1, len(rows)), descending).to_pylist()
    for x, key_x in zip(rows, keys, strict=True):
        for y, key_y in zip(rows, keys, strict=True):
            expected = compare((x,), (y,), [descending])
            assert (key_x > key_y) - (key_x < key_y) == expected, (x, y)


@settings(max_examples=60)
@given(data=st.data())
def test_keys_of_several_columns_sort_as_python_sorts_rows(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3, unique=True))
    descending = [data.draw(st.booleans()) for _ in names]
    rows = data.draw(st.lists(st.tuples(*(COLUMNS[name][1] | st.none() for name in names)), min_size=1, max_size=10))
    columns = {name: pa.array([row[i] for row in rows], COLUMNS[name][0]) for i, name in enumerate(names)}
    prefer = ["-" * down + name for name, down in zip(names, descending, strict=True)]
    keys = order_keys(batch(**columns), prefer, []).to_pylist()
    by_key = sorted(range(len(rows)), key=lambda i: keys[i])
    by_hand = sorted(range(len(rows)), key=cmp_to_key(lambda i, j: compare(rows[i], rows[j], descending)))
    assert by_key == by_hand  # equal rows keep their order: their ids ascend


def test_keys_of_integers_of_other_width_compare() -> None:
    narrow = encode_column(pa.array([-1, 5], pa.int16())).to_pylist()
    wide = encode_column(pa.array([3, 2**63], pa.uint64())).to_pylist()
    assert narrow[0] < wide[0] < narrow[1] < wide[1]


def test_keys_of_timestamps_of_other_units_compare() -> None:
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 5_000, UTC)
    keys = [encode_column(pa.array([moment], pa.timestamp(unit, "UTC")))[0].as_py() for unit in ("ms", "us", "ns")]
    day = encode_column(pa.array([datetime.date(1970, 1, 1)], pa.date64()))[0].as_py()
    assert len(set(keys)) == 1 and keys[0] < day == encode_column(pa.array([0], pa.timestamp("s")))[0].as_py()


def test_floats_not_a_number_sort_with_nulls_and_zeros_are_equal() -> None:
    keys = encode_column(pa.array([float("nan"), None, float("inf"), 0.0, -0.0])).to_pylist()
    assert keys[0] == keys[1] > keys[2] > keys[3] == keys[4]


def test_decimals_of_other_scale_compare() -> None:
    keys = [
        encode_column(pa.array([Decimal("1.50")], kind))[0].as_py()
        for kind in (pa.decimal128(5, 2), pa.decimal64(9, 4))
    ]
    assert keys[0] == keys[1]


def test_bytes_under_a_null_do_not_reach_the_key() -> None:
    values = pa.array([Decimal(1), Decimal(2)], pa.decimal128(3, 0))
    hidden = pa.Array.from_buffers(values.type, 2, [pa.py_buffer(b"\x01"), values.buffers()[1]])
    for descending in (False, True):
        expected = encode_column(pa.array([Decimal(1), None], values.type), descending)
        assert encode_column(hidden, descending).equals(expected)


def test_dictionary_column_sorts_as_its_values() -> None:
    values = pa.array(["b", None, "a"], pa.string())
    assert encode_column(values.dictionary_encode()).equals(encode_column(values))


def test_null_column_leaves_the_decision_to_the_next() -> None:
    assert len(set(encode_column(pa.nulls(3)).to_pylist())) == 1


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.duration("s"), pa.decimal256(40, 2)]
)
def test_column_without_an_order_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="no order for 'odd'"):
        order_keys(batch(odd=pa.nulls(2, kind)), ["odd"], [])


def test_source_sorts_by_its_place_in_the_list() -> None:
    rows = batch(source=pa.array(["web", "code", "books"], pa.large_string()))
    keys = order_keys(rows, ("source",), ["books", "web", "code"]).to_pylist()
    assert sorted(range(3), key=keys.__getitem__) == [2, 0, 1]


def test_source_outside_the_list_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"\['web'\]; the list is \['code'\]"):
        order_keys(batch(stars=pa.array([1])), ("source",), ["code"])


def test_length_counts_code_points_unless_there_is_such_a_column() -> None:
    texts = pa.array(["\U0001f600\U0001f600", "abc", "abcd"], pa.large_string())
    by_text = order_keys(batch(text=texts), ("-length",), []).to_pylist()
    by_column = order_keys(batch(text=texts, length=pa.array([3, 2, 1])), ("-length",), []).to_pylist()
    assert sorted(range(3), key=by_text.__getitem__) == [2, 1, 0]
    assert sorted(range(3), key=by_column.__getitem__) == [0, 1, 2]


def test_equal_rows_fall_back_to_digest_and_id() -> None:
    texts = pa.array(["x", "y", "x"], pa.large_string())
    rows = batch(text=texts)
    keys = order_keys(rows, (), []).to_pylist()
    digests = text_digests(texts)
    assert keys == [d + i for d, i in zip(digests.to_pylist(), rows.column("id").to_pylist(), strict=True)]
    assert order_keys(rows, (), [], digests).to_pylist() == keys


def test_keys_of_no_rows_are_empty() -> None:
    assert len(order_keys(batch(stars=pa.array([1], pa.int64())).slice(1), ("source", "-stars", "-length"), [])) == 0


def test_keys_do_not_depend_on_batching() -> None:
    rows = batch(
        stars=pa.array([3, None, -1, 7]),
        name=pa.array(["a", "", None, "\0"]),
        text=pa.array(list("wxyz"), pa.large_string()),
    )
    whole = order_keys(rows, ("-stars", "-name", "length"), []).to_pylist()
    assert [order_keys(rows.slice(i, 1), ("-stars", "-name", "length"), [])[0].as_py() for i in range(4)] == whole


def test_missing_column_is_named() -> None:
    with pytest.raises(SchemaError, match="needs the column 'stars'"):
        order_keys(batch(length=pa.array([1])), ("stars",), [])


def test_prefer_malformed_is_refused() -> None:
    assert order_by(("source", "-stars")) == (OrderBy("source"), OrderBy("stars", descending=True))
    with pytest.raises(ValueError, match="'-'"):
        order_by(("-",))
    with pytest.raises(ValueError, match="twice"):
        order_by(("stars", "-stars"))
    with pytest.raises(TypeError, match="got the string"):
        order_by("stars")


def test_group_hashes_are_equal_where_values_are() -> None:
    hashes = group_hashes(pa.array(["en", None, "de", "en", None, ""]))
    assert hashes[0] == hashes[3] and hashes[1] == hashes[4] and len(np.unique(hashes)) == 4
    assert group_hashes(pa.array(["de"]))[0] == hashes[2]
