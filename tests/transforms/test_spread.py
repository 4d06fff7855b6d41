"""Values around a threshold, counted one by one; chains, branches and slices add up."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.transforms.documents import batch_of
from transforms.chain import run_chain
from transforms.gopher_rules import GopherQuality
from transforms.refinedweb_rules import RefinedWebLines
from transforms.spread import BINS, EDGE, NO_EVIDENCE, QUARTERS, Spread, added, counts_of, renamed
from transforms.switch import Switch


@pytest.mark.parametrize("sense", ["≥", "≤"])
@pytest.mark.parametrize("threshold", ["1/5", "2", "50", "3/7", "0", "-3/2"])
def test_counts_are_those_of_fractions_one_by_one(sense: str, threshold: str) -> None:
    draw, bound = random.Random(threshold), Fraction(threshold)
    values = [(draw.randrange(-20, 300), draw.choice([1, 7, 100])) for _ in range(400)]
    values += [(0, 0)] * 3 + [(bound.numerator, bound.denominator)]
    expected = [0] * (BINS + 1)
    for numerator, denominator in values:
        if not denominator:
            expected[NO_EVIDENCE] += 1
            continue
        value = Fraction(numerator, denominator)
        passes = value >= bound if sense == "≥" else value <= bound
        if bound <= 0:
            expected[BINS - 1 if passes == (sense == "≥") else 0] += 1
            continue
        place = value / bound * QUARTERS
        whole = place // 1 if sense == "≥" else -(-place // 1) - 1
        found = int(min(max(whole, 0), BINS - 1))
        assert (found >= EDGE) == (passes == (sense == "≥"))
        expected[found] += 1
    numerators, denominators = (np.array(column, np.int64) for column in zip(*values, strict=True))
    assert counts_of(numerators, denominators, sense, bound) == tuple(expected)


def test_counts_of_values_beyond_64_bits_are_exact() -> None:
    huge = np.array([2**62, 2**61], np.int64)
    assert counts_of(huge, np.ones(2, np.int64), "≤", Fraction(2**62)) == (0, 1, 0, 1, 0, 0, 0, 0, 0, 0)


def spread(counts: tuple[int, ...], transform: str = "F") -> Spread:
    return Spread(transform, "r", "m", "≥ 2", counts)


def test_rules_are_added_and_renamed() -> None:
    assert added([spread((1, 2)), spread((3, 4), "G"), spread((5, 6))]) == (spread((6, 8)), spread((3, 4), "G"))
    assert renamed([spread((1,)), spread((1,), "G")], "F", "F#2") == (spread((1,), "F#2"), spread((1,), "G"))


def test_spreads_of_chains_and_branches_are_those_of_their_filters() -> None:
    texts = ["the cat and the dog of it " * n for n in (1, 9, 20)]
    batch = batch_of(texts, {pa.field("language", pa.large_string()): ["en", "de", "en"]})
    plain = GopherQuality().apply(batch).spreads
    assert {one.measure: sum(one.counts) for one in plain}.keys() >= {"words", "stop words"}
    assert {sum(one.counts) for one in plain} == {3}
    twice = run_chain([GopherQuality(), GopherQuality()], batch).spreads
    assert {one.transform for one in twice} == {"GopherQuality", "GopherQuality#2"}
    switched = Switch("language", en=[GopherQuality()], others=[GopherQuality()]).apply(batch).spreads
    assert {one.transform for one in switched} == {
        "Switch(language=en)/GopherQuality",
        "Switch(language=others)/GopherQuality",
    }
    for one in plain:
        parts = [other.counts for other in switched if other.rule[1:] == one.rule[1:]]
        assert tuple(map(sum, zip(*parts, strict=True))) == one.counts


def test_batches_add_up() -> None:
    texts = ["word " * n for n in range(40, 61)]
    whole = GopherQuality().apply(batch_of(texts)).spreads
    parts = [GopherQuality().apply(batch_of(texts[at : at + 4])).spreads for at in range(0, 21, 4)]
    assert added(one for part in parts for one in part) == whole


def test_batches_of_a_filter_that_cuts_lines_add_up() -> None:
    long = f"A line {'of many words ' * 20}that stays."
    texts = [f"{long}\n{'12 likes' if n % 3 else 'And another one.'}" for n in range(9)]
    rules = RefinedWebLines()
    whole = rules.apply(batch_of(texts))
    assert whole.edits.num_rows == 6
    (cut,) = whole.spreads
    assert (cut.measure, sum(cut.counts)) == ("words cut", 9)
    parts = [rules.apply(batch_of(texts[at : at + 1])).spreads for at in range(9)]
    assert added(one for part in parts for one in part) == whole.spreads
