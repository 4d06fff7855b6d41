"""The index of benchmark items that `Decontaminate` looks documents up in.

Which texts of an item are looked for, and which of their words count, is said in `contamination_units`. An item none of
whose questions is protected is *unprotectable*, and listed: "short" with fewer than `LEAST_WORDS` words in all, else
"plain".

Invariants: exact (a sorted array of all seeds; the bit filter before it only saves look-ups). Equal items are indexed
once. At most `POSTINGS` units of a seed are used. Cost: 60 to 100 µs and 1 to 2 kB an item; an index of `LEAST_STORED`
items and more is kept on the node (`contamination_stored`) and mapped from then on, in some 10 ms.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from transforms import unicode_tables
from transforms.benchmark_items import Benchmark, Item
from transforms.contamination_common import NO_PHRASES, Phrases
from transforms.contamination_stored import store, stored
from transforms.contamination_units import (
    BOTH,
    LEAST_WORDS,
    QUESTION,
    Known,
    Survey,
    Weights,
    distinct_items,
    joined_texts,
    protected,
    single_texts,
    survey_texts,
    weigh_quotations,
)
from transforms.contamination_words import Flags, Folded, Hashes, Integers
from transforms.kernels import cache_folder, kernel, own_folder

POSTINGS: Final = 32
SHARE_OF_SEEDS: Final = 8
"""One in so many seeds of a unit has to show before it is looked into: an edited word takes `SEED` of them."""

LEAST_STORED: Final = 2_000
"""Items from which on an index is kept on the node: smaller ones are built as fast."""

ALONE, JOINED, SHORT, PLAIN = range(4)
"""Status of an item: its question is found alone, only with choices or answer, not at all (too short, too plain)."""


@dataclass(frozen=True, slots=True)
class Units:
    """Texts to look for: unit u has the words first[u]:last[u] of `folded`; a word that does not count weighs 0."""

    item: Integers
    part: Integers
    first: Integers
    last: Integers
    folded: Folded
    weight: Weights


@dataclass(frozen=True, slots=True)
class Seeds:
    """All seeds, sorted by hash: which unit has it, and from which word on.

    `directory[p]:directory[p + 1]` are the seeds whose hash begins with the bits of p; `filter` has a bit for each.
    """

    hashes: Hashes
    unit: npt.NDArray[np.int32]
    offset: npt.NDArray[np.int32]
    directory: npt.NDArray[np.int64]
    filter: Hashes


@dataclass(frozen=True, slots=True)
class Index:
    """What `benchmarks` are found by. `needs[u]` is the least number of different seeds of unit u that are looked into.

    `items` are (benchmark, number) pairs. Per item, `status` is `ALONE`, `JOINED`, `SHORT` or `PLAIN`, and `same` is
    the first item of the same words, whose units stand for both.
    """

    benchmarks: tuple[Benchmark, ...]
    items: tuple[tuple[int, int], ...]
    units: Units
    seeds: Seeds
    status: npt.NDArray[np.uint8]
    same: Integers
    needs: Integers
    counting: Integers  # words of each unit that count; 0 where it is to be found as a whole, however long
    total: Integers  # what they weigh together

    def place_of(self, benchmark: int, number: int) -> int:
        """Return the place among `items`, which ascend."""
        return bisect_left(self.items, (benchmark, number))

    def equal_items(self, benchmark: int, number: int) -> list[tuple[int, int]]:
        """Return the items of the same words as this one, itself among them."""
        first = self.same[self.place_of(benchmark, number)]
        return [self.items[place] for place in np.flatnonzero(self.same == first).tolist()]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays: what it takes of memory, once per node where it is kept there."""
        return sum(array.nbytes for array in _arrays_of(self).values())


@dataclass(frozen=True, slots=True)
class Protection:
    """How much of a benchmark can be found: items in all, and the numbers of those that cannot, or not alone.

    `joined`: the question is found only where its choices or its answer follow; `short`, `plain`: not at all.
    """

    benchmark: str
    items: int
    joined: tuple[int, ...]
    short: tuple[int, ...]
    plain: tuple[int, ...]


@lru_cache(maxsize=4)
def load_index(benchmarks: tuple[Benchmark, ...], common: Phrases = NO_PHRASES) -> Index:
    """Return the index of `benchmarks`: as this node keeps it, else built, and kept where there are many items.

    Raises:
        BenchmarkError: a file is not there, changed, or has none of the fields.
    """
    path = _place_of(benchmarks, common)
    for benchmark in benchmarks:
        benchmark.check()
    if (arrays := stored(path)) is not None:
        return _index_of(benchmarks, arrays)
    read = [(number, item) for number, benchmark in enumerate(benchmarks) for item in benchmark.items()]
    index = build_index(benchmarks, read, common)
    if len(read) >= LEAST_STORED:
        store(path, _arrays_of(index))
    return index


def _place_of(benchmarks: tuple[Benchmark, ...], common: Phrases) -> Path:
    """Return where this node keeps the index: under the digest of rules, files, their fields and what is common."""
    named = [[b.digest, b.format, b.question, b.answer, b.passage, b.choices] for b in benchmarks]
    content = json.dumps([cache_folder(__name__).name, named, common.digest, unicode_tables.digest()]).encode()
    return own_folder() / "contamination" / f"{blake3(content).hexdigest()[:32]}.index"


def _arrays_of(index: Index) -> dict[str, npt.NDArray[Any]]:
    """Return what `stored` gives back to `_index_of`."""
    arrays: dict[str, npt.NDArray[Any]] = {"items": np.array(index.items, np.int64).reshape(-1, 2)}
    for part, names in _PARTS.items():
        arrays |= {f"{part}.{name}": getattr(getattr(index, part), name) for name in names}
    arrays |= {f"folded.{name}": getattr(index.units.folded, name) for name in _FOLDED}
    return arrays | {name: getattr(index, name) for name in _COUNTS}


def _index_of(benchmarks: tuple[Benchmark, ...], arrays: Mapping[str, npt.NDArray[Any]]) -> Index:
    items = tuple(map(tuple, arrays["items"].tolist()))
    units, seeds = ({name: arrays[f"{part}.{name}"] for name in names} for part, names in _PARTS.items())
    folded = Folded(*(arrays[f"folded.{name}"] for name in _FOLDED))
    counts = {name: arrays[name] for name in _COUNTS}
    return Index(benchmarks, items, Units(folded=folded, **units), Seeds(**seeds), **counts)


_PARTS: Final = {
    "units": ("item", "part", "first", "last", "weight"),
    "seeds": ("hashes", "unit", "offset", "directory", "filter"),
}
_FOLDED: Final = ("hashes", "powers", "kinds", "capital")
_COUNTS: Final = ("status", "same", "needs", "counting", "total")


def protection(benchmarks: Sequence[Benchmark]) -> tuple[Protection, ...]:
    """Return how much of each benchmark can be found, when indexed together."""
    return protection_of(load_index(tuple(benchmarks)))


def protection_of(index: Index) -> tuple[Protection, ...]:
    """Return how much of each benchmark of `index` can be found."""
    listed: list[tuple[list[int], ...]] = [([], [], [], []) for _ in index.benchmarks]
    for (benchmark, number), status in zip(index.items, index.status.tolist(), strict=True):
        listed[benchmark][status].append(number)
    return tuple(
        Protection(benchmark.title, sum(map(len, found)), *(tuple(numbers) for numbers in found[1:]))
        for benchmark, found in zip(index.benchmarks, listed, strict=True)
    )


def unprotectable(benchmark: Benchmark) -> tuple[int, ...]:
    """Return the numbers of the items of `benchmark` that are too short or too plain to be found."""
    (found,) = protection((benchmark,))
    return tuple(sorted(found.short + found.plain))


def build_index(
    benchmarks: tuple[Benchmark, ...], read: Sequence[tuple[int, Item]], common: Phrases = NO_PHRASES
) -> Index:
    """Return the index of the items `read`, each with the number of its benchmark."""
    distinct, place = distinct_items([item for _, item in read])
    single = survey_texts(list(single_texts(distinct)), Known(common.hashes(), None))
    quoting = weigh_quotations(single)
    used, counting = protected(single)
    counting[quoting] = 0
    asked = {single.texts[t].item for t in np.flatnonzero(used).tolist() if single.texts[t].part == QUESTION}
    joined = survey_texts(list(joined_texts(distinct, asked)), single.known)
    used_too, counting_too = protected(joined)
    found = asked | {joined.texts[t].item for t in np.flatnonzero(used_too).tolist()}
    words = _words_in_all(single, joined, len(distinct))
    state = [_status(i in asked, i in found, words[i]) for i in range(len(distinct))]
    units = _units([(single, used), (joined, used_too)])
    seeds, numbers = _seeds([(single, used), (joined, used_too)])
    counted = np.concatenate([counting[used], counting_too[used_too]])
    sums = np.concatenate([[0], np.cumsum(units.weight, dtype=np.int64)])
    total = sums[units.last] - sums[units.first]
    first_of = {p: n for n, p in reversed(list(enumerate(place)))}
    origin = np.array([first_of[i] for i in range(len(distinct))], np.int64)
    units = Units(origin[units.item], units.part, units.first, units.last, units.folded, units.weight)
    items = tuple((benchmark, item.number) for benchmark, item in read)
    status, same = np.array([state[p] for p in place], np.uint8), origin[np.array(place, np.int64)]
    return Index(benchmarks, items, units, seeds, status, same, numbers, counted, total)


def _status(alone: bool, joined: bool, words: int) -> int:
    if alone or joined:
        return ALONE if alone else JOINED
    return SHORT if words < LEAST_WORDS else PLAIN


def _words_in_all(single: Survey, joined: Survey, items: int) -> list[int]:
    """Return the number of words of each item's longest text that asks its question."""
    words = [0] * items
    for survey in (single, joined):
        for text, size in zip(survey.texts, (survey.last - survey.first).tolist(), strict=True):
            if text.part <= BOTH and text.of < 0:
                words[text.item] = max(words[text.item], size)
    return words


def _units(surveys: Sequence[tuple[Survey, Flags]]) -> Units:
    columns: list[list[Any]] = [[] for _ in range(9)]
    base = 0
    for survey, used in surveys:
        chosen = np.flatnonzero(used)
        texts = [survey.texts[t] for t in chosen.tolist()]
        sizes = survey.last[chosen] - survey.first[chosen]
        ends = np.cumsum(sizes) + base
        words = np.repeat(survey.first[chosen] - (ends - sizes), sizes) + np.arange(base, base + int(sizes.sum()))
        folded = survey.folded
        arrays = [[t.item for t in texts], [t.part for t in texts], ends - sizes, ends]
        arrays += [a[words] for a in (folded.hashes, folded.powers, folded.kinds, folded.capital, survey.weight)]
        for column, array in zip(columns, arrays, strict=True):
            column.append(np.asarray(array, np.int64) if isinstance(array, list) else array)
        base += int(sizes.sum())
    item, part, first, last, hashes, powers, kinds, capital, weight = (np.concatenate(column) for column in columns)
    return Units(item, part, first, last, Folded(hashes, powers, kinds, capital), weight)


def _seeds(surveys: Sequence[tuple[Survey, Flags]]) -> tuple[Seeds, Integers]:
    """Return the seeds of all units, and how many each has to show before it is looked into."""
    hashes, units, offsets = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    base = 0
    for survey, used in surveys:
        number = np.where(used, np.cumsum(used) - 1 + base, -1)
        of = np.array([n if text.of < 0 else text.of for n, text in enumerate(survey.texts)], np.int64)
        labels = np.array([text.labels for text in survey.texts], np.int64)
        sizes = survey.last - survey.first
        text = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(text)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        word = survey.first[text] + place
        chosen = survey.usable[word] & (number[of[text]] >= 0)
        text, place, word = text[chosen], place[chosen], word[chosen]
        hashes.append(survey.seeds[word])
        units.append(number[of[text]])
        offsets.append(np.maximum(place - labels[text] // 2, 0))
        base += int(used.sum())
    return _sorted_seeds(np.concatenate(hashes), np.concatenate(units), np.concatenate(offsets), base)


def _sorted_seeds(hashes: Hashes, units: Integers, offsets: Integers, count: int) -> tuple[Seeds, Integers]:
    order = np.argsort(hashes)
    hashes, units, offsets = hashes[order], units[order], offsets[order]
    _order_equal(hashes, units, offsets)
    new = np.ones(len(hashes), np.bool_)
    new[1:] = (hashes[1:] != hashes[:-1]) | (units[1:] != units[:-1])
    hashes, units, offsets = hashes[new], units[new], offsets[new]
    number = np.arange(len(hashes))
    is_first = np.ones(len(hashes), np.bool_)
    is_first[1:] = hashes[1:] != hashes[:-1]
    rank = number - np.maximum.accumulate(np.where(is_first, number, 0))
    few = rank < POSTINGS
    hashes, units, offsets = hashes[few], units[few], offsets[few]
    bits = max(1, len(hashes).bit_length())
    directory = np.searchsorted(hashes >> np.uint64(64 - bits), np.arange((1 << bits) + 1, dtype=np.uint64))
    filter_bits = min(max(bits + 4, 6), 33)
    filled = np.zeros((1 << filter_bits) // 64, np.uint64)
    _fill_filter(hashes, np.uint64(64 - filter_bits), filled)
    needs = np.bincount(units, minlength=count)
    seeds = Seeds(hashes, units.astype(np.int32), offsets.astype(np.int32), directory.astype(np.int64), filled)
    return seeds, np.maximum(needs // SHARE_OF_SEEDS, 1).astype(np.int64)


@kernel
def _order_equal(hashes: Hashes, units: Integers, offsets: Integers) -> None:
    """Bring entries of equal hashes into the order of (unit, offset): there are few of each."""
    for i in range(1, len(hashes)):
        j = i
        while j > 0 and hashes[j - 1] == hashes[j] and (units[j - 1], offsets[j - 1]) > (units[j], offsets[j]):
            units[j - 1], units[j] = units[j], units[j - 1]
            offsets[j - 1], offsets[j] = offsets[j], offsets[j - 1]
            j -= 1


@kernel
def _fill_filter(hashes: Hashes, shift: np.uint64, filled: Hashes) -> None:
    for i in range(len(hashes)):
        bit = hashes[i] >> shift
        filled[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
