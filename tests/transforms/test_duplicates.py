from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import blake3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.duplicates import (
    STAYS,
    Candidates,
    EqualTexts,
    common_prefix,
    jaccard_pairs,
    leading_bits,
    order_prefixes,
    split_buckets,
    survivors,
    text_digests,
)
from transforms.minhash import MinHash, Sets, band_keys, shingle_sets, split_keys
from transforms.order_key import order_keys

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "duplicates"
Pair = tuple[int, int]
Similarities = dict[Pair, Fraction]


def longs(values: object) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64)


def hashes(values: object) -> npt.NDArray[np.uint64]:
    return np.array(values, np.uint64)


def array(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


# --- oracles ---------------------------------------------------------------------------------------------------------


def sequential_rule(order: list[int], similar: Similarities) -> dict[int, int]:
    """Return the keeper of each dropped document, by the definition: document after document, O(n²)."""
    kept: list[int] = []
    keeper: dict[int, int] = {}
    for document in order:
        partners = [other for other in kept if (min(document, other), max(document, other)) in similar]
        if partners:  # max takes the first of equals, which is the first in keep order
            keeper[document] = max(partners, key=lambda other: similar[min(document, other), max(document, other)])
        else:
            kept.append(document)
    return keeper


def brute_force_pairs(sets: list[set[int]], threshold: Fraction) -> Similarities:
    """Return all pairs whose exact Jaccard similarity is at least `threshold`."""
    pairs = {}
    for (a, left), (b, right) in itertools.combinations(enumerate(sets), 2):
        if min(len(left), len(right)) >= threshold * max(len(left), len(right)):
            both = len(left & right)
            similarity = Fraction(both, len(left) + len(right) - both)
            if similarity >= threshold:
                pairs[a, b] = similarity
    return pairs


# --- digests and exact duplicates ------------------------------------------------------------------------------------


def test_text_digests_are_blake3_of_utf8() -> None:
    texts = ["", "a", "漢字", "x" * 5000, "\0"]
    expected = [blake3.blake3(text.encode()).digest()[:16] for text in texts]
    assert text_digests(array(texts)).to_pylist() == expected
    assert text_digests(array(texts).slice(1, 3)).to_pylist() == expected[1:4]
    assert len(text_digests(array([]))) == 0


def equal_texts(
    digests: pa.FixedSizeBinaryArray, keys: pa.LargeBinaryArray, groups: pa.LargeBinaryArray, cuts: Sequence[int] = ()
) -> npt.NDArray[np.int64]:
    """Return per row the row that stays in its place, or `STAYS`; the sorted rows are fed in pieces cut at `cuts`."""
    order = sorted(range(len(digests)), key=lambda i: (digests[i].as_py(), groups[i].as_py(), keys[i].as_py()))
    keeper, texts = np.full(len(digests), STAYS, np.int64), EqualTexts()
    edges = sorted({0, len(order), *(cut % (len(order) + 1) for cut in cuts)})
    for first, last in itertools.pairwise(edges):
        rows = pa.array(order[first:last], pa.int64())
        found = texts.find(digests.take(rows), groups.take(rows), keys.take(rows), rows.to_numpy())
        keeper[rows.to_numpy()[found.rows]] = found.keepers
        assert found.ids.to_pylist() == [keys[int(row)].as_py()[-16:] for row in found.keepers]
    return keeper


@given(
    rows=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([b"en", b"de", b""]), st.binary(max_size=2))),
    cuts=st.lists(st.integers(0, 30), max_size=4),
)
def test_equal_texts_of_any_rows_and_batches_go_for_the_lowest_key(
    rows: list[tuple[str, bytes, bytes]], cuts: list[int]
) -> None:
    digests, groups = (
        text_digests(array([row[0] for row in rows])),
        pa.array([row[1] for row in rows], pa.large_binary()),
    )
    keys = [key + i.to_bytes(16, "big") for i, (_, _, key) in enumerate(rows)]
    keeper = equal_texts(digests, pa.array(keys, pa.large_binary()), groups, cuts)
    for i, (text, group, _) in enumerate(rows):
        first = min((j for j, row in enumerate(rows) if row[:2] == (text, group)), key=lambda j: keys[j])
        assert keeper[i] == (STAYS if first == i else first)


def test_digests_alike_in_one_half_are_different_texts() -> None:
    digests = pa.array([b"a" * 8 + b"b" * 8, b"a" * 16, b"b" * 16, b"a" * 16], pa.binary(16))
    keys = pa.array([bytes([i]) * 16 for i in range(4)], pa.large_binary())
    assert equal_texts(digests, keys, pa.array([b""] * 4, pa.large_binary())).tolist() == [STAYS, STAYS, STAYS, 1]


def test_leading_bits_order_as_digests_do() -> None:
    digests = text_digests(array(["a", "b", "c", "d"])).slice(1)
    assert leading_bits(digests).tolist() == [int.from_bytes(digest[:8], "big") for digest in digests.to_pylist()]


# --- candidates ------------------------------------------------------------------------------------------------------


def pairs_of(found: Candidates) -> list[Pair]:
    return list(zip(found.a.tolist(), found.b.tolist(), strict=True))


@dataclass(frozen=True)
class Row:
    key: int
    split: int
    order: int
    document: int


def candidates(rows: list[Row], cap: int) -> Candidates:
    columns = [hashes([getattr(row, name) for row in rows]) for name in ("key", "split", "order")]
    return split_buckets(*columns, longs([row.document for row in rows]), cap)


def pair_of(x: Row, y: Row) -> Pair:
    return min(x.document, y.document), max(x.document, y.document)


def first_of(rows: list[Row]) -> Row:
    return min(rows, key=lambda row: (row.order, row.document))


def bucket_by_hand(rows: list[Row], cap: int) -> set[Pair]:
    """Return the pairs of one bucket: the rule."""
    if len(rows) <= cap:
        return {pair_of(*pair) for pair in itertools.combinations(rows, 2)}
    star = {pair_of(first_of(rows), row) for row in rows if row is not first_of(rows)}
    return star | split_by_hand(rows, max(2, cap // 16), 0)


def split_by_hand(rows: list[Row], most: int, level: int) -> set[Pair]:
    if len(rows) <= most:
        return {pair_of(*pair) for pair in itertools.combinations(rows, 2)}
    if level < 8:
        parts: dict[int, list[Row]] = {}
        for row in rows:
            parts.setdefault(row.split.to_bytes(8, "big")[level], []).append(row)
        return set().union(*(split_by_hand(part, most, level + 1) for part in parts.values()))
    rows = sorted(rows, key=lambda row: (row.order, row.document))
    runs = [split_by_hand(rows[i : i + most], most, level) for i in range(0, len(rows), most)]
    return {pair_of(rows[0], row) for row in rows[1:]}.union(*runs)


SPLITS = st.builds(lambda x, y, z: x << 56 | y << 40 | z, *[st.integers(0, 2)] * 3)


@settings(max_examples=200)
@given(
    cells=st.lists(st.tuples(st.integers(0, 2), SPLITS, st.integers(0, 3)), max_size=60),
    cap=st.integers(2, 8) | st.integers(40, 60),
    shuffle=st.randoms(use_true_random=False),
)
def test_candidates_of_any_buckets_equal_the_plain_rule_in_any_order(
    cells: list[tuple[int, int, int]], cap: int, shuffle: random.Random
) -> None:
    rows = [Row(key, split, order, 3 * i) for i, (key, split, order) in enumerate(cells)]
    buckets = [[row for row in rows if row.key == key] for key in range(3)]
    expected = set().union(*(bucket_by_hand(bucket, cap) for bucket in buckets))
    shuffled = shuffle.sample(rows, len(rows))
    found = candidates(shuffled, cap)
    assert pairs_of(found) == sorted(expected)
    possible = sum(len(bucket) * (len(bucket) - 1) // 2 for bucket in buckets)
    assert found.given_up == possible - len(expected)
    assert found.largest == max(len(bucket) for bucket in buckets)
    assert found.buckets == sum(len(bucket) > cap for bucket in buckets)


def test_pair_of_several_buckets_is_one_candidate() -> None:
    rows = [Row(key, 0, 0, document) for key in (1, 2, 3) for document in (8, 5)]
    found = candidates(rows, 2)
    assert pairs_of(found) == [(5, 8)] and found.given_up == 0


def test_bucket_above_the_cap_is_split_by_the_next_band() -> None:
    rows = [Row(7, (i // 2) << 56, 9 - i, i) for i in range(8)]  # document 7 is first in keep order
    found = candidates(rows, 4)
    assert pairs_of(found) == sorted({(0, 1), (2, 3), (4, 5)} | {(i, 7) for i in range(7)})
    assert found.given_up == 28 - 10 and found.buckets == 1 and found.largest == 8


def test_bucket_of_texts_alike_in_all_bands_is_cut_in_runs_around_its_first() -> None:
    rows = [Row(7, 0, 100 - i, i) for i in range(100)]  # document 99 is first in keep order
    found = candidates(rows, 48)  # runs of three
    assert {pair for pair in pairs_of(found) if 99 in pair} == {(i, 99) for i in range(99)}
    assert found.given_up == 4950 - len(pairs_of(found)) and len(pairs_of(found)) == 99 + 1 + 32 * 3


def test_bucket_of_many_rows_gives_few_pairs_per_row() -> None:
    count, cap = 20_000, 160
    zeros = np.zeros(count, np.uint64)
    found = split_buckets(zeros, zeros, zeros, np.arange(count, dtype=np.int64), cap)
    assert len(found.a) <= count * (cap / 32 + 2)
    assert len(found.a) + found.given_up == count * (count - 1) // 2


def test_order_prefixes_follow_the_keep_order_behind_what_all_keys_share() -> None:
    lengths = [5, 70_000, 12, 70_000, 1, 12]
    batch = pa.RecordBatch.from_pydict(
        {
            "id": pa.array([bytes([i]) * 16 for i in range(6)], pa.binary(16)),
            "source": array(["s"] * 6),
            "text": array([f"{i}" * length for i, length in enumerate(lengths)]),
        }
    )
    keys, digests = order_keys(batch, ("source", "-length"), ["s"]), text_digests(batch.column("text"))
    ordered = sorted(keys.to_pylist())
    skipped = common_prefix(ordered[0], ordered[-1])
    prefixes = order_prefixes(keys, skipped, digests).tolist()
    by_key = sorted(range(6), key=lambda row: (-lengths[row], digests[row].as_py()[:5]))
    assert sorted(range(6), key=prefixes.__getitem__) == by_key and len(set(prefixes)) == 6 and skipped > 2
    assert common_prefix(b"ab", b"abc") == 2 and common_prefix(b"", b"a") == 0


def test_candidates_of_no_rows_are_none() -> None:
    assert candidates([], 2).a.tolist() == [] and candidates([], 2).largest == 0
    assert candidates([Row(1, 1, 1, 1)], 2).a.tolist() == []


def test_candidates_of_uneven_columns_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got \[1, 1, 1, 2\] and cap 5"):
        split_buckets(hashes([1]), hashes([1]), hashes([1]), longs([1, 2]), 5)


# --- verification ----------------------------------------------------------------------------------------------------


@given(values=st.lists(st.sets(st.integers(0, 12) | st.integers(2**64 - 5, 2**64 - 1)), min_size=1, max_size=6))
def test_jaccard_of_any_sets_equals_set_arithmetic(values: list[set[int]]) -> None:
    offsets = longs([0, *itertools.accumulate(len(value) for value in values)])
    sets = Sets(offsets, hashes([x for value in values for x in sorted(value)]))
    pairs = list(itertools.product(range(len(values)), repeat=2))
    intersection, union = jaccard_pairs(sets, longs([a for a, _ in pairs]), longs([b for _, b in pairs]))
    assert intersection.tolist() == [len(values[a] & values[b]) for a, b in pairs]
    assert union.tolist() == [len(values[a] | values[b]) for a, b in pairs]


# --- who stays -------------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], Similarities]:
    count = draw(st.integers(1, 9))
    order = draw(st.permutations(range(count)))
    everything = list(itertools.combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(everything), unique=True)) if everything else []
    return order, {edge: Fraction(draw(st.integers(8, 10)), 10) for edge in edges}


def decide(order: list[int], similar: Similarities, flip: bool = False) -> tuple[dict[int, int], dict[int, int]]:
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) * 5
    a, b = longs([pair[flip] for pair in similar]), longs([pair[not flip] for pair in similar])
    both, union = (
        longs([10 * s.numerator for s in similar.values()]),
        longs([10 * s.denominator for s in similar.values()]),
    )
    verdict = survivors(rank, a, b, both, union)
    edge = {d: int(e) for d, e in enumerate(verdict.edge) if e >= 0}
    return {d: int(k) for d, k in enumerate(verdict.keeper) if k != STAYS}, edge


@settings(max_examples=300)
@given(graph=graphs(), flip=st.booleans())
def test_survivors_of_any_graph_equal_the_sequential_rule_and_keep_both_guarantees(
    graph: tuple[list[int], Similarities], flip: bool
) -> None:
    order, similar = graph
    keeper, edge = decide(order, similar, flip)
    assert keeper == sequential_rule(order, similar)
    pairs = list(similar)
    for dropped, kept in keeper.items():  # each dropped document has a surviving, verified partner
        assert kept not in keeper and pairs[edge[dropped]] == (min(dropped, kept), max(dropped, kept))
    assert all(a in keeper or b in keeper for a, b in pairs)  # no two survivors share an edge


@given(graph=graphs(), seed=st.integers(0, 5))
def test_survivors_do_not_depend_on_the_order_of_edges(graph: tuple[list[int], Similarities], seed: int) -> None:
    order, similar = graph
    items = list(similar.items())
    random.Random(seed).shuffle(items)
    assert decide(order, dict(items))[0] == decide(order, similar)[0]


def test_survivors_of_a_chain_of_versions_alternate() -> None:
    count = 100_000
    a = np.arange(count - 1, dtype=np.int64)
    ones = np.ones(count - 1, np.int64)
    keeper = survivors(np.arange(count, dtype=np.int64), a, a + 1, ones, ones).keeper
    assert (keeper[::2] == STAYS).all() and (keeper[1::2] == np.arange(0, count - 1, 2)).all()


def test_dropped_document_names_the_most_similar_survivor_then_the_first() -> None:
    tenths = {(0, 3): Fraction(8, 10), (1, 3): Fraction(9, 10), (2, 3): Fraction(9, 10)}
    assert decide([2, 1, 0, 3], tenths)[0] == {3: 2}
    assert decide([1, 2, 0, 3], tenths)[0] == {3: 1}


def test_survivors_of_no_edges_are_all() -> None:
    assert decide([1, 0], {}) == ({}, {})


# --- all of it, against brute force ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What the product's functions make of a corpus in memory."""

    pairs: set[Pair]
    keeper: dict[int, int]
    exact: dict[int, int]


def rank_of(batch: pa.RecordBatch, prefer: tuple[str, ...]) -> list[int]:
    keys = order_keys(batch, prefer, ["corpus"]).to_pylist()
    return sorted(range(len(keys)), key=keys.__getitem__)


def deduplicated(batch: pa.RecordBatch, minhash: MinHash, prefer: tuple[str, ...]) -> Run:
    """Compose the stages as the engine does: exact, bands, candidates, verification, verdict."""
    keys = order_keys(batch, prefer, ["corpus"])
    exact = equal_texts(text_digests(batch.column("text")), keys, pa.array([b""] * len(keys), pa.large_binary()))
    left = np.flatnonzero(exact == STAYS)
    text = batch.column("text").take(pa.array(left))
    rank = np.empty(batch.num_rows, np.int64)
    rank[rank_of(batch, prefer)] = np.arange(batch.num_rows)
    bands = band_keys(text, minhash)
    rows = np.repeat(np.arange(len(left)), minhash.bands)
    found = split_buckets(
        bands.ravel(), split_keys(bands).ravel(), rank[left][rows].astype(np.uint64), rows, minhash.cap
    )
    intersection, union = jaccard_pairs(shingle_sets(text, minhash.ngram), found.a, found.b)
    edge = minhash.similar(intersection, union)
    verdict = survivors(rank[left], found.a[edge], found.b[edge], intersection[edge], union[edge])
    names = left.tolist()
    return Run(
        {(names[a], names[b]) for a, b in pairs_of(found)},
        {names[d]: names[k] for d, k in enumerate(verdict.keeper.tolist()) if k != STAYS},
        {d: int(k) for d, k in enumerate(exact) if k != STAYS},
    )


def corpus(texts: list[str]) -> pa.RecordBatch:
    ids = [blake3.blake3(str(i).encode()).digest(16) for i in range(len(texts))]
    columns = {"id": pa.array(ids, pa.binary(16)), "text": array(texts), "source": array(["corpus"] * len(texts))}
    return pa.RecordBatch.from_pydict(columns)


def check_against_brute_force(
    texts: list[str], prefer: tuple[str, ...], unseen_at_most: int
) -> tuple[Run, Similarities]:
    """Compare with the sequential rule over exact pairs, but for those that never became candidates."""
    batch, minhash = corpus(texts), MinHash()
    run = deduplicated(batch, minhash, prefer)
    sets = shingle_sets(batch.column("text"), minhash.ngram)
    plain = [set(sets.values[i:j].tolist()) for i, j in itertools.pairwise(sets.offsets.tolist())]
    truth = brute_force_pairs(plain, minhash.ratio)
    distinct = {pair: s for pair, s in truth.items() if not run.exact.keys() & set(pair)}
    unseen = [(pair, float(s)) for pair, s in distinct.items() if pair not in run.pairs]
    assert len(unseen) <= unseen_at_most, f"pairs at or above the threshold that were no candidates: {unseen}"
    seen = {pair: s for pair, s in distinct.items() if pair in run.pairs}
    order = [document for document in rank_of(batch, prefer) if document not in run.exact]
    assert run.keeper == sequential_rule(order, seen), f"unseen pairs: {unseen}"
    return run, truth


def variants(count: int, seed: int) -> list[str]:
    """Return texts in families: copies with a few words changed, cut or repeated."""
    draw, texts = random.Random(seed), []
    while len(texts) < count:
        words = [f"w{draw.randrange(400)}" for _ in range(draw.choice([3, 60, 150, 400]))]
        for _ in range(draw.randrange(1, 12)):
            copy = list(words)
            for _ in range(draw.randrange(0, 1 + len(words) // 60)):
                copy[draw.randrange(len(copy))] = f"w{draw.randrange(400)}"
            texts.append(" ".join(copy[: len(copy) - draw.randrange(0, 1 + len(copy) // 20)]))
    return texts[:count]


@pytest.mark.parametrize("prefer", [("-length",), ("length",), ()])
def test_composition_on_families_of_variants_equals_brute_force(prefer: tuple[str, ...]) -> None:
    run, truth = check_against_brute_force(variants(400, 1), prefer, unseen_at_most=2)
    assert len(run.keeper) > 100 and len(run.exact) > 20 and len(truth) > 400


def test_collapsing_equal_texts_first_changes_no_survivor() -> None:
    """Equal texts have equal neighbours, so the sequential rule over all rows keeps the same ones."""
    texts = variants(400, 4)
    run, truth = check_against_brute_force(texts, ("-length",), unseen_at_most=0)
    dropped = sequential_rule(rank_of(corpus(texts), ("-length",)), truth).keys()
    assert run.exact and dropped == run.keeper.keys() | run.exact.keys()


def licences() -> tuple[list[str], list[str]]:
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not there")
    table = pq.read_table(SHARED / "spdx_docs.parquet")
    return table.column("id").to_pylist(), table.column("text").to_pylist()


@pytest.mark.parametrize(("prefer", "kept"), [(("-length",), 577), (("length",), 575), ((), 575)])
def test_composition_on_licence_texts_equals_brute_force(prefer: tuple[str, ...], kept: int) -> None:
    """713 real licences: near-copies, templates, growing versions. All 392 pairs become candidates (775 proposed)."""
    _, texts = licences()
    run, truth = check_against_brute_force(texts, prefer, unseen_at_most=1)
    assert len(truth) == 392 and len(run.exact) == 40
    assert len(texts) - len(run.keeper) - len(run.exact) == kept


def test_licence_pairs_are_the_published_ones_but_for_one() -> None:
    r"""The set's truth splits words by `\w+`: 393 pairs, 576 kept longest first. Ours: 392 of them, 577 kept.

    The missing pair, of YPL-1.0 and Zimbra-1.4, lies at .8005 there and at .798 here: they differ in numbers, and "1.0"
    is one word to us where `\w+` sees "1" and "0". YPL-1.0 is the one survivor that Zimbra-1.4 resembles, so it stays.
    """
    ids, texts = licences()
    number = {name: i for i, name in enumerate(ids)}
    rows = pq.read_table(SHARED / "spdx_pairs.parquet").to_pylist()
    published = {(number[row["a"]], number[row["b"]]): Fraction(row["jaccard_w5"]) for row in rows}
    published = {(min(pair), max(pair)): value for pair, value in published.items() if value >= Fraction(4, 5)}
    run, ours = check_against_brute_force(texts, ("-length",), unseen_at_most=1)
    assert len(published) == 393 and not ours.keys() - published.keys()
    assert {(ids[a], ids[b]) for a, b in published.keys() - ours.keys()} == {("YPL-1.0", "Zimbra-1.4")}
    theirs = sequential_rule(rank_of(corpus(texts), ("-length",)), published)
    assert len(texts) - len(theirs) == 576
    ours_gone = run.keeper.keys() | run.exact.keys()
    assert {ids[d] for d in theirs.keys() - ours_gone} == {"Zimbra-1.4"} and not ours_gone - theirs.keys()
