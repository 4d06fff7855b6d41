"""The permutation is a bijection that no simple statistic tells from chance; two published ones fail the same tests.

Statistical tests have fixed keys. Each states its level: 1e-6 divided by the number of tests of its kind.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures.permutation import LARGEST, Permutation, component_key
from transforms.canonical import canonical_json

ALPHA = 1e-6
WINDOW = 1024
ODD_SIZE = 1_000_003
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
GOLDEN_TEN = [8, 1, 6, 2, 9, 5, 4, 3, 7, 0]
GOLDEN_LARGE = [922679393035, 399144455078, 325796410147]


def mix(value):
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & MASK
    return value ^ value >> 31


def reference(index, size, seed, name, epoch):
    """The permutation as its module describes it, in integers of any length."""
    digest = blake3(canonical_json(["curate permutation 1", seed, name]).encode()).digest()
    first, second = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")
    state = mix(mix((first + (epoch + 1) * GOLDEN) & MASK) ^ second)
    rows = math.isqrt(size - 1) + 1
    rows += rows % 2
    columns = -(-size // rows)
    while True:
        row, column = divmod(index, columns)
        for turn in range(32 if size < 256 else 12):
            key = mix((state + (turn + 1) * GOLDEN) & MASK)
            if turn % 2 == 0:
                row = (row + ((mix(column ^ key) >> 22) * rows >> 42)) % rows
            else:
                column = (column + ((mix(row ^ key) >> 22) * columns >> 42)) % columns
        index = row * columns + column
        if index < size:
            return index


def values(size, epoch=0, seed=7, name="web"):
    return Permutation(size, seed, name, epoch).take(np.arange(size))


def weak_feistel(size, positions, seed=1):
    """Five rounds of r·2654435761 + k, as FACTS describes Levanter's, with cycle walking."""
    half = (int(size - 1).bit_length() + 1) // 2
    low = np.uint64((1 << half) - 1)
    keys = np.random.default_rng(seed).integers(0, 1 << half, 5, dtype=np.uint64)
    result = np.asarray(positions, np.uint64)
    walking = np.ones(len(result), bool)
    while walking.any():
        left, right = result[walking] >> np.uint64(half), result[walking] & low
        for key in keys:
            left, right = right, left ^ ((right * np.uint64(2654435761) + key) & low)
        result[walking] = left << np.uint64(half) | right
        walking = result >= size
    return result.astype(np.int64)


def float_linear(size, positions):
    """a·i + b mod size through double precision, as mixing int64 and uint64 arrays makes NumPy compute it."""
    return ((positions.astype(np.float64) * 123_456_789.0 + 98_765.0) % size).astype(np.int64)


def chi_square_tail(statistic, degrees):
    """P(χ² ≥ statistic): regularised upper incomplete gamma function, by its series or continued fraction."""
    a, x = degrees / 2, statistic / 2
    scale = math.exp(a * math.log(x) - x - math.lgamma(a)) if x > 0 else 0.0
    if x < a + 1:
        term = total = 1 / a
        for n in range(1, 10_000):
            term *= x / (a + n)
            total += term
        return max(0.0, 1 - scale * total)
    b, c = x + 1 - a, 1e300
    d = h = 1 / b
    for n in range(1, 10_000):
        an = -n * (n - a)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        h *= d * c
    return scale * h


def even_tail(counts, expected=None):
    """Level at which `counts` are told from evenly (or as `expected`) spread ones."""
    counts = np.asarray(counts, float)
    expected = np.full(len(counts), counts.sum() / len(counts)) if expected is None else expected
    return chi_square_tail(float(((counts - expected) ** 2 / expected).sum()), len(counts) - 1)


def smallest_tail_of_residues(values, size):
    """Smallest level over residues mod 2 … 64 in the first, middle and last window: 189 tests."""
    tails = []
    for start in (0, len(values) // 2, len(values) - WINDOW):
        window = values[start : start + WINDOW]
        for modulus in range(2, 65):
            expected = WINDOW * np.array([len(range(r, size, modulus)) for r in range(modulus)]) / size
            tails.append(even_tail(np.bincount(window % modulus, minlength=modulus), expected))
    return min(tails)


def smallest_tail_of_lags(values, size):
    """Smallest level of serial correlations at lags 1 … 64: 64 normal tests."""
    centred = values / size - 0.5
    tails = []
    for lag in range(1, 65):
        z = 12 * float(centred[:-lag] @ centred[lag:]) / math.sqrt(len(values) - lag)
        tails.append(math.erfc(abs(z) / math.sqrt(2)))
    return min(tails)


def smallest_tail_of_spread(values, size):
    """Smallest level over the first 64 windows of even spread over 32 equal stretches: 64 tests."""
    parts = (values[: 64 * WINDOW].astype(object) * 32 // size).astype(np.int64).reshape(64, WINDOW)
    return min(even_tail(np.bincount(part, minlength=32)) for part in parts)


SIZES = [*range(1, 140), 255, 256, 257, 1000, 1023, 1024, 1025, 4095, 4097, 10_007, 40_000, 65_535, 65_536]


def test_permutation_of_many_sizes_takes_each_value_once():
    for size in SIZES:
        order = Permutation(size, 7, "web", size % 3)
        images = order.take(np.arange(size))
        assert np.array_equal(np.sort(images), np.arange(size)), size
        assert np.array_equal(order.indices(images), np.arange(size)), size


@pytest.mark.slow
def test_permutation_of_all_sizes_to_2_to_10_and_some_to_2_to_20_takes_each_value_once():
    for size in [*range(1, 1025), (1 << 20) - 3, 1 << 20]:
        assert np.array_equal(np.sort(values(size)), np.arange(size)), size


@settings(max_examples=300)
@given(st.data(), st.integers(1, LARGEST), st.integers(), st.text(max_size=9), st.integers(0, 1 << 50))
def test_permutation_of_any_size_equals_reference_and_inverse(data, size, seed, name, epoch):
    index = data.draw(st.integers(0, size - 1))
    order = Permutation(size, seed, name, epoch)
    image = order[index]
    assert image == reference(index, size, seed, name, epoch)
    assert order.index(image) == index
    assert 0 <= image < size


def test_permutation_outside_its_range_is_refused():
    order = Permutation(10, 7, "web")
    assert len(order) == 10
    for call in (lambda: order[10], lambda: order[-1], lambda: order.index(10)):
        with pytest.raises(IndexError, match=r"is not in range\(10\)"):
            call()
    for size in (0, LARGEST + 1):
        with pytest.raises(ValueError, match="size from 1 to"):
            Permutation(size, 7, "web")
    with pytest.raises(ValueError, match="numbered from 0"):
        Permutation(10, 7, "web", -1)


def test_permutation_golden_values_stay():
    assert values(10).tolist() == GOLDEN_TEN
    order = Permutation(LARGEST - 87, 7, "größe/1", 3)
    assert [order[0], order[1], order[LARGEST - 88]] == GOLDEN_LARGE


def test_permutation_of_three_and_four_comes_in_all_orders_evenly():
    """At level 1e-6 / 2; 32 rounds leave a bias below 1e-4."""
    for size, trials in ((3, 12_000), (4, 24_000)):
        orders = [tuple(values(size, epoch).tolist()) for epoch in range(trials)]
        counts = [orders.count(order) for order in set(orders)]
        assert len(counts) == math.factorial(size)
        assert even_tail(counts) > ALPHA / 2


@pytest.mark.parametrize("size", [65_536, ODD_SIZE])
def test_permutation_in_windows_has_even_residues_spread_and_no_serial_correlation(size):
    """Levels 1e-6 / (number of tests) each: 189 residues, 64 lags, 64 windows, three keys."""
    for seed in (1, 2, 3):
        images = values(size, seed=seed)
        assert smallest_tail_of_residues(images, size) > ALPHA / (3 * 189)
        assert smallest_tail_of_lags(images, size) > ALPHA / (3 * 64)
        assert smallest_tail_of_spread(images, size) > ALPHA / (3 * 64)


def test_weak_feistel_fails_the_residue_test():
    images = weak_feistel(ODD_SIZE, np.arange(ODD_SIZE))
    assert np.array_equal(np.sort(images), np.arange(ODD_SIZE))
    assert smallest_tail_of_residues(images, ODD_SIZE) < ALPHA / (3 * 189)
    shares = [np.bincount(images[at : at + WINDOW] % 8).max() / WINDOW for at in range(0, ODD_SIZE - WINDOW, WINDOW)]
    assert max(shares) > 0.5  # 12.5 % would be even


def test_linear_permutation_in_double_precision_is_no_bijection_and_fails_serial_correlation():
    size = 200_000_003
    positions = np.unique(np.random.default_rng(0).integers(0, size, 1_000_000))
    assert len(np.unique(float_linear(size, positions))) < len(positions)
    assert len(np.unique(Permutation(size, 7, "web").take(positions))) == len(positions)
    window = np.arange(size - 100_000, size)
    assert smallest_tail_of_lags(float_linear(size, window), size) < ALPHA / (3 * 64)
    assert smallest_tail_of_lags(Permutation(size, 7, "web").take(window), size) > ALPHA / (3 * 64)


def test_permutation_when_one_bit_of_the_index_flips_changes_half_of_the_bits():
    """40 × 40 pairs of bits at 4,096 indices; the largest of 1,600 normal deviations at level 1e-6."""
    size, trials = LARGEST, 4096
    indices = np.random.default_rng(0).integers(0, size, trials)
    order = Permutation(size, 7, "web")
    images, bits = order.take(indices), np.arange(40)
    for bit in bits:
        changed = images ^ order.take(indices ^ (1 << bit))
        flips = ((changed[:, None] >> bits) & 1).sum(axis=0)
        z = np.abs(flips - trials / 2) / math.sqrt(trials / 4)
        assert math.erfc(float(z.max()) / math.sqrt(2)) > ALPHA / 1600, int(bit)


def test_permutations_of_neighbouring_seeds_names_and_epochs_agree_no_more_than_chance():
    """Two permutations agree at Poisson(1) indices; 60 comparisons at level 1e-6 / 60."""
    size = 50_000
    base = values(size)
    others = [values(size, epoch=epoch) for epoch in range(1, 21)]
    others += [values(size, seed=7 ^ 1 << bit) for bit in range(20)]
    others += [values(size, name=f"web{n}") for n in range(20)]
    limit = next(k for k in range(100) if 1 - sum(math.exp(-1) / math.factorial(i) for i in range(k)) < ALPHA / 60)
    assert max(int((base == other).sum()) for other in others) < limit


def test_component_key_depends_on_seed_and_name():
    keys = {tuple(component_key(seed, name).tolist()) for seed in (-1, 0, 1, 10) for name in ("", "0", "10", "é")}
    assert len(keys) == 16
