"""Pairs of a sample are pairs of one group each, and stand for all pairs whatever the bands propose."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import sqrt

import numpy as np
import pyarrow as pa
import pytest

from transforms.banding_curve import paired_points
from transforms.banding_sample import ROUNDS, SALT, Meetings, meeting_hashes, text_keys
from transforms.minhash import MinHash, band_keys, sets_of

METHOD = MinHash(ngram=1, bands=4, rows=3)


def versions(count: int, like: float, seed: int = 1) -> list[str]:
    """Return pairs of texts of 40 words, of which `like` are the same."""
    draw = random.Random(seed)
    texts = []
    for number in range(count):
        words = [f"w{number}x{at}" for at in range(40)]
        texts += [" ".join(words), " ".join(w if draw.random() < like else f"o{w}" for w in words)]
    return texts


def column(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def sampled(texts: list[str], most: int = 10**6, parts: int = 1) -> set[tuple[str, str]]:
    meetings, size = Meetings(), -(-len(texts) // parts)
    for first in range(0, len(texts), size):
        part = column(texts[first : first + size])
        meetings.add(meeting_hashes(part, METHOD), text_keys(part))
    names = dict(zip(text_keys(column(texts)).tolist(), texts, strict=True))
    return {(names[a], names[b]) for a, b in meetings.pairs(most).tolist()}


def test_pairs_depend_on_the_set_of_texts_alone_and_a_larger_number_only_adds() -> None:
    texts = versions(60, 0.8)
    found = sampled(texts)
    assert len(found) > 50 and len({text for pair in found for text in pair}) == 2 * len(found)
    shuffled = [*texts, *texts[:9]]
    random.Random(3).shuffle(shuffled)
    assert sampled(shuffled, parts=7) == found
    assert [sampled(texts, most) <= found for most in (0, 1, 20)] == [True, True, True]
    assert len(sampled(texts, 20)) == 20


def test_pairs_share_a_minimum_of_a_hash_that_no_band_has() -> None:
    texts = versions(30, 0.6)
    further = replace(METHOD, bands=1, rows=ROUNDS, seed=METHOD.seed ^ SALT)
    hashes = meeting_hashes(column(texts), METHOD)
    place = {text: at for at, text in enumerate(texts)}
    for one, other in sampled(texts):
        assert (hashes[place[one]] == hashes[place[other]]).any()
    groups = {tuple(row) for row in hashes.tolist()}
    assert len(groups) == len(texts) and further.seed != METHOD.seed


def test_texts_of_different_groups_share_no_hash() -> None:
    texts = column(versions(10, 0.9))
    apart = meeting_hashes(texts, METHOD, np.arange(len(texts), dtype=np.uint64) << np.uint64(40))
    assert len(np.unique(apart[:, 0])) == len(texts)


def test_share_of_sampled_pairs_that_bands_propose_is_that_of_all_pairs() -> None:
    texts = versions(1500, 0.6, seed=5)
    every = column(texts)
    sets, keys = sets_of(every, METHOD), band_keys(every, METHOD)
    assert len(sets) == len(texts)
    pairs = [(at, at + 1) for at in range(0, len(texts), 2)]
    share = sum(bool((keys[a] == keys[b]).any()) for a, b in pairs) / len(pairs)
    found = sampled(texts, 700)
    one, other = (column([pair[side] for pair in found]) for side in (0, 1))
    points = paired_points(one, other, METHOD)
    total = sum(point.pairs for point in points)
    assert total == 700
    expected = sum(point.expected * point.pairs for point in points) / total
    found_share = sum(point.candidates for point in points) / total
    assert abs(found_share - expected) <= 3 * sqrt(expected * (1 - expected) / total)
    assert share == pytest.approx(found_share, abs=0.05)


def test_points_of_pairs_are_those_counted_one_by_one() -> None:
    texts = versions(8, 0.8)
    one, other = zip(*combinations(texts, 2), strict=True)
    points = paired_points(column(list(one)), column(list(other)), METHOD)
    keys = {text: set(band_keys(column([text]), METHOD)[0].tolist()) for text in texts}
    expected: dict[Fraction, list[tuple[bool, float]]] = {}
    for a, b in zip(one, other, strict=True):
        mine, theirs = set(a.split(" ")), set(b.split(" "))
        similarity = Fraction(len(mine & theirs), len(mine | theirs))
        if similarity >= Fraction(1, 5):
            low = Fraction(1, 5) + Fraction(1, 20) * min(int((similarity - Fraction(1, 5)) * 20), 15)
            expected.setdefault(low, []).append((bool(keys[a] & keys[b]), METHOD.recall(float(similarity))))
    assert sum(map(len, expected.values())) == 8
    assert {(p.low, p.high, p.pairs, p.candidates) for p in points} == {
        (low, low + Fraction(1, 20), len(found), sum(met for met, _ in found)) for low, found in expected.items()
    }
    for point in points:
        chances = [chance for _, chance in expected[point.low]]
        assert point.expected == pytest.approx(sum(chances) / len(chances))


def test_pair_that_stands_in_many_groups_is_one_pair() -> None:
    texts, meetings = column(versions(20, 0.9)), Meetings()
    for group in range(12):
        meetings.add(meeting_hashes(texts, METHOD, np.full(len(texts), group, np.uint64)), text_keys(texts))
    found = meetings.pairs(1000)
    assert len(found) > 10 and len(np.unique(found)) == 2 * len(found)
