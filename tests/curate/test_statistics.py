"""Statistics merge in any order to what the whole would have given."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.accounting.statistics import (
    LENGTH_EDGES,
    add,
    distinct,
    estimate_distinct,
    least,
    length_bin,
    merge,
    merge_all,
    text_sum,
)
from curate.digests import digest_json

NAMES = st.sampled_from(["sum", "hll", "least", "k", "name", "en", ""])


@st.composite
def documents(draw: st.DrawFn) -> list[tuple[str, str, int]]:
    """Return rows (licence, host, characters) in which names of leaves stand for licences and hosts too."""
    return draw(st.lists(st.tuples(NAMES, st.sampled_from([f"host{n}" for n in range(9)]), st.integers(0, 5))))


def statistics_of(rows: list[tuple[str, str, int]]) -> dict[str, Any]:
    """Return statistics with every kind of leaf."""
    counted: dict[str, Any] = {}
    hosts: dict[str, dict[str, int]] = {}
    for licence, host, characters in rows:
        add(counted, ["groups", licence, "documents"], 1)
        add(counted, ["groups", licence, "characters"], characters)
        entry = hosts.setdefault(host, {"documents": 0, "characters": 0})
        entry["documents"] += 1
        entry["characters"] += characters
    texts = [f"{licence} {characters}".encode() for licence, _, characters in rows]
    return {
        **counted,
        "step": {"label": "GopherQuality"},
        "hosts": {"most": least(hosts, 4), "distinct": distinct(host.encode() for host in hosts)},
        "texts": {"count": len(texts), "multiset": text_sum(texts)},
    }


@settings(max_examples=60)
@given(parts=st.lists(documents(), min_size=1, max_size=5), data=st.data())
def test_statistics_of_parts_merge_in_any_order_and_grouping_to_those_of_the_whole(
    parts: list[list[tuple[str, str, int]]], data: Any
) -> None:
    whole = digest_json(statistics_of([row for part in parts for row in part]))
    shuffled = data.draw(st.permutations([statistics_of(part) for part in parts]))
    assert digest_json(merge_all(shuffled)) == whole
    assert digest_json(functools.reduce(merge, shuffled)) == whole
    assert digest_json(functools.reduce(lambda right, left: merge(left, right), shuffled)) == whole


@settings(max_examples=40)
@given(parts=st.lists(documents(), min_size=3, max_size=3))
def test_merging_is_commutative_and_associative_and_nothing_is_neutral(parts: list[list[tuple[str, str, int]]]) -> None:
    a, b, c = map(statistics_of, parts)
    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge({}, a) == merge(a, {}) == a
    assert merge_all([]) == {}


def test_merging_changes_none_of_its_parts() -> None:
    left, right = statistics_of([("en", "h", 1)]), statistics_of([("en", "h", 2), ("sum", "i", 1)])
    before = digest_json([left, right])
    merged = merge(left, right)
    add(merged, ["groups", "en", "documents"], 5)
    assert digest_json([left, right]) == before


def test_entries_kept_of_the_lowest_are_exact_over_all_parts() -> None:
    """An entry that one part keeps and another does not would be counted short: the lowest of a union cannot be."""
    parts = [{f"host{n}": {"documents": 1} for n in range(first, first + 40)} for first in (0, 10, 20)]
    whole: dict[str, dict[str, int]] = {}
    for part in parts:
        for name in part:
            whole.setdefault(name, {"documents": 0})["documents"] += 1
    for order in itertools.permutations(parts):
        assert merge_all([least(part, 5) for part in order]) == least(whole, 5)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1}, {"a": "x"}),
        ({"a": {"b": 1}}, {"a": 1}),
        ({"name": "GopherQuality"}, {"name": "MaskPII"}),
        (least({}, 4), least({}, 5)),
        ({"a": None}, {"a": None}),
    ],
)
def test_statistics_of_other_shapes_are_not_merged(left: dict[str, Any], right: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cannot merge"):
        merge(left, right)


@pytest.mark.parametrize("count", [0, 1, 10, 1000, 50_000])
def test_number_of_distinct_values_is_estimated_within_its_error(count: int) -> None:
    leaf = distinct(f"value {n % max(1, count)}".encode() for n in range(count + count // 2))
    assert abs(estimate_distinct(leaf) - count) <= 0.05 * count


def test_distinct_values_of_overlapping_parts_are_those_of_the_union() -> None:
    values = [f"v{n}".encode() for n in range(500)]
    union = merge({"d": distinct(values[:300])}, {"d": distinct(values[200:])})
    assert union == {"d": distinct(values)}


def test_multiset_of_texts_sees_how_often_each_comes() -> None:
    assert text_sum([b"a", b"a", b"b"]) == text_sum([b"a", b"b", b"a"]) != text_sum([b"a", b"b"])


def test_length_falls_into_the_bin_below_its_edge() -> None:
    assert [length_bin(n) for n in (0, 15, 16, 31, 32)] == ["16", "16", "32", "32", "64"]
    assert [length_bin(LENGTH_EDGES[-1] + n) for n in (-1, 0)] == [str(LENGTH_EDGES[-1]), "more"]
