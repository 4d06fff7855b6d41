"""What of benchmark items is looked for, and what of it counts: texts, their seeds, the weight of their words.

A *unit* is a text of an item that is looked for: the question; if it is too short or too plain alone, the question
with its choices and the question with its answer; the answer; the passage; a longer quotation within the question. A
*seed* is `SEED` consecutive words of a unit, as one hash; single letters (variables, names of choices, tags of HTML)
are passed over.

What counts (all rules are of the benchmarks alone, so the index is a function of their files):
- a seed is *plain* with fewer than `DISTINCT` distinct words that are neither numbers nor single letters: digit runs,
  lists of primes, alphabets, lists of coordinates;
- a seed is *common* if more than `COMMON` different questions have it: "which of the following is", counting loops;
- a word counts if a seed that is neither plain nor common covers it; it weighs 1, or `RARE` if at most one question in
  `RARE_SHARE` (or `COMMON` questions) has that word and it is neither a number nor a single letter: what a function
  is to compute tells two exercises apart, "write a function to" does not;
- a unit is protected if at least `LEAST_WORDS` words count, `LEAST_RARE` of them rare, of `LEAST_CHARACTERS` characters
  or more together (answers, passages and quotations: `LEAST_APART` words: they say less about where they are from);
- in a question with quotations of at least `LEAST_QUOTED` words, the words outside them count, if enough are left; if
  not, the question is found only as a whole: "Who said, …?" is not asked by every page with the saying.

Invariants: a pure function of the items. Cost: 10 µs an item; at most `LONGEST` words of a unit are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.benchmark_items import Item
from transforms.contamination_words import BASE, SINGLE, WORD, Flags, Folded, Hashes, Integers, Kinds, fold
from transforms.kernels import kernel
from transforms.segmentation import find_words, text_buffers
from transforms.word_hashes import mix

Weights = npt.NDArray[np.uint8]

SEED: Final = 5
"""Words of a seed."""
DISTINCT: Final = 3
COMMON: Final = 10
LEAST_WORDS: Final = 8
LEAST_CHARACTERS: Final = 24
LEAST_APART: Final = 20
LEAST_QUOTED: Final = 8
LEAST_RARE: Final = 2
RARE: Final = 3
RARE_SHARE: Final = 100
LONGEST: Final = 1024

PARTS: Final = ("question", "question and choices", "question and answer", "answer", "passage", "quotation")
"""What a unit is of its item, by number."""
QUESTION, CHOICES, BOTH, ANSWER, PASSAGE, QUOTATION = range(6)

_QUOTES: Final = ((b"\xe2\x80\x9c", b"\xe2\x80\x9d"), (b"\xc2\xab", b"\xc2\xbb"), (b'"', b'"'))


@dataclass(frozen=True, slots=True)
class Text:
    """A text that may become a unit, or (`of` ≥ 0) a layout of the unit made of text `of`, with `labels` more words."""

    item: int
    part: int
    owner: int
    text: str
    of: int = -1
    labels: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of all benchmarks together, as sorted hashes: seeds that are common, words that are not rare."""

    common: Hashes
    frequent: Hashes | None


NOTHING: Final = Known(np.zeros(0, np.uint64), None)


@dataclass(frozen=True, slots=True)
class Survey:
    """Texts with their words; per word the seed that begins there, and whether that seed may be looked up."""

    texts: list[Text]
    first: Integers
    last: Integers
    starts: Integers  # of words, in bytes from the beginning of their text
    folded: Folded
    seeds: Hashes
    usable: Flags
    known: Known
    weight: Weights


def distinct_items(items: list[Item]) -> tuple[list[Item], list[int]]:
    """Return the different items, in the order of their questions, and for each of `items` its place among them."""
    content = [(item.question or item.passage, item.answer, item.choices, item.passage) for item in items]
    places = {key: place for place, key in enumerate(sorted(set(content)))}
    first: dict[int, Item] = {}
    for key, item in zip(content, items, strict=True):
        first.setdefault(places[key], item)
    return [first[place] for place in range(len(places))], [places[key] for key in content]


def _owners(items: list[Item]) -> Iterator[tuple[int, int, Item]]:
    """Yield (place, number of its question, item): equal questions have one number."""
    owner, previous = -1, None
    for place, item in enumerate(items):
        asked = item.question or item.passage
        owner += asked != previous
        previous = asked
        yield place, owner, item


def single_texts(items: list[Item]) -> Iterator[Text]:
    """Yield questions, answers, passages, and quotations within questions, in the order of their owners."""
    for place, owner, item in _owners(items):
        for part, text in ((QUESTION, item.question), (ANSWER, item.answer), (PASSAGE, item.passage)):
            if text:
                yield Text(place, part, owner, text)
        for start, end in _quoted(item.question):
            yield Text(place, QUOTATION, owner, item.question.encode()[start:end].decode(errors="replace"))


def joined_texts(items: list[Item], asked: set[int]) -> Iterator[Text]:
    """Yield the questions that cannot stand alone with their choices and answers, and the usual layouts of these."""
    count = 0
    for place, owner, item in _owners(items):
        if place in asked or not item.question:
            continue
        made: list[Text] = []
        if item.choices:
            made.append(Text(place, CHOICES, owner, "\n".join([item.question, *item.choices])))
            named = [f"{number}. {choice}" for number, choice in enumerate(item.choices, 1)]
            made.append(Text(place, CHOICES, owner, "\n".join([item.question, *named]), count, len(named)))
        if item.answer:
            base = count + len(made)
            made.append(Text(place, BOTH, owner, f"{item.question}\n{item.answer}"))
            made.append(Text(place, BOTH, owner, f"{item.question}\nAnswer: {item.answer}", base, 1))
        count += len(made)
        yield from made


def survey_texts(texts: list[Text], known: Known) -> Survey:
    """Find the words and seeds of `texts`, which are in the order of their owners."""
    column = pa.array([text.text for text in texts], pa.large_string())
    words = find_words(column)
    folded = fold(words)
    first, last = words.documents[:-1], np.minimum(words.documents[1:], words.documents[:-1] + LONGEST)
    seeds, ends, usable = _seed_hashes(folded.hashes, folded.kinds, first, last)
    owners = np.repeat(np.array([text.owner for text in texts], np.int64), np.diff(words.documents))
    common = np.union1d(known.common, _frequent(seeds[usable], owners[usable], COMMON))
    usable &= ~_is_among(seeds, common)
    starts = words.starts - np.repeat(text_buffers(column)[1][:-1], np.diff(words.documents))
    frequent = known.frequent
    if frequent is None:
        frequent = _frequent(folded.hashes, owners, max(COMMON, (int(owners.max(initial=0)) + 1) // RARE_SHARE))
    weight = _weights(usable, ends)
    weight[(weight > 0) & (folded.kinds == WORD) & ~_is_among(folded.hashes, frequent)] = RARE
    return Survey(texts, first, last, starts, folded, seeds, usable, Known(common, frequent), weight)


def _frequent(hashes: Hashes, owners: Integers, most: int) -> Hashes:
    """Return the hashes, sorted, that more than `most` owners have; `owners` ascend."""
    return np.sort(_of_many(hashes, owners, np.int64(most)))


def _is_among(values: Hashes, few: Hashes) -> Flags:
    """Return which of `values` are among `few`, which is sorted."""
    if not len(few):
        return np.zeros(len(values), np.bool_)
    return np.asarray(few[np.minimum(np.searchsorted(few, values), len(few) - 1)] == values, np.bool_)


def _quoted(question: str) -> list[tuple[int, int]]:
    """Return where, in bytes, quotations stand that may have `LEAST_QUOTED` words; triple marks are code."""
    spans: list[tuple[int, int]] = []
    if '"' not in question and "\u201c" not in question and "\u00ab" not in question:
        return spans
    text = question.encode()
    for opening, closing in _QUOTES:
        position = 0
        while b'"""' not in text and (start := text.find(opening, position)) >= 0:
            start += len(opening)
            end = text.find(closing, start)
            if end < 0:
                break
            if text.count(b" ", start, end) >= LEAST_QUOTED - 1:
                spans.append((start, end))
            position = end + len(closing)
    return spans


def weigh_quotations(survey: Survey) -> Flags:
    """Let only the words outside quotations count, where enough of them do; return which questions are others."""
    others = np.zeros(len(survey.texts), np.bool_)
    for number, text in enumerate(survey.texts):
        if text.part == QUESTION and (spans := _quoted(text.text)):
            mine = slice(survey.first[number], survey.last[number])
            starts = survey.starts[mine]
            outside = np.ones(len(starts), np.uint8)
            for start, end in spans:
                outside[(starts >= start) & (starts < end)] = 0
            others[number] = int(((survey.weight[mine] * outside) > 0).sum()) < LEAST_WORDS
            if not others[number]:
                survey.weight[mine] *= outside
    return others


def protected(survey: Survey) -> tuple[Flags, Integers]:
    """Return which texts become units, and how many words of each text count."""
    counts = survey.weight > 0
    counting = _sums(counts, survey)
    rare = _sums(survey.weight == RARE, survey)
    characters = _sums(_lengths(survey.folded.powers) * counts, survey)
    parts = np.array([text.part for text in survey.texts], np.int64)
    least = np.where(parts >= ANSWER, LEAST_APART, LEAST_WORDS)
    enough = (counting >= least) & (rare >= LEAST_RARE) & (characters >= LEAST_CHARACTERS)
    own = np.array([text.of < 0 for text in survey.texts], np.bool_)
    return enough & own, counting


def _sums(values: npt.NDArray[Any], survey: Survey) -> Integers:
    """Return the sum of `values` of the words of each text."""
    sums = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.asarray(sums[survey.last] - sums[survey.first], np.int64)


@kernel
def seed_at(hashes: Hashes, place: np.int64) -> np.uint64:
    """Return the hash of the `SEED` words from `place` on."""
    value = np.uint64(0)
    for word in range(SEED):
        value = (value + hashes[place + word]) * np.uint64(0xD6E8FEB86659FD93)
    return mix(value)


@kernel
def _seed_hashes(hashes: Hashes, kinds: Kinds, first: Integers, last: Integers) -> tuple[Hashes, Integers, Flags]:
    """Return the seed that begins at each word, its last word, and whether there is one that is not plain."""
    seeds, usable = np.zeros(len(hashes), np.uint64), np.zeros(len(hashes), np.bool_)
    ends, mine, places = np.zeros(len(hashes), np.int64), np.empty(SEED, np.uint64), np.empty(SEED, np.int64)
    for text in range(len(first)):
        count, distinct = 0, 0
        for place in range(first[text], last[text]):
            if kinds[place] == SINGLE:
                continue
            if count == SEED:
                mine[:-1] = mine[1:].copy()
                places[:-1] = places[1:].copy()
                count -= 1
            mine[count], places[count] = hashes[place], place
            count += 1
            if count == SEED:
                distinct = 0
                for i in range(SEED):
                    is_new = kinds[places[i]] == WORD
                    for j in range(i):
                        is_new &= mine[j] != mine[i]
                    distinct += is_new
                seeds[places[0]], ends[places[0]] = seed_at(mine, np.int64(0)), place
                usable[places[0]] = distinct >= DISTINCT
    return seeds, ends, usable


@kernel
def _of_many(hashes: Hashes, owners: Integers, most: np.int64) -> Hashes:
    """Return the hashes that more than `most` owners have, in any order; `owners` ascend."""
    size = 16
    while size < len(hashes) + len(hashes) // 2:
        size *= 2
    keys, owner, distinct = np.zeros(size, np.uint64), np.full(size, np.int64(-1), np.int64), np.zeros(size, np.int32)
    found, count = np.empty(len(hashes), np.uint64), 0
    for i in range(len(hashes)):
        slot = np.int64(mix(hashes[i]) & np.uint64(size - 1))
        while owner[slot] >= 0 and keys[slot] != hashes[i]:
            slot = (slot + 1) & (size - 1)
        if owner[slot] != owners[i]:
            keys[slot], owner[slot] = hashes[i], owners[i]
            distinct[slot] += 1
            if distinct[slot] == most + 1:
                found[count] = hashes[i]
                count += 1
    return found[:count]


@kernel
def _weights(usable: Flags, ends: Integers) -> Weights:
    """Return 1 for each word that a usable seed covers; a seed never crosses texts."""
    weight = np.zeros(len(usable), np.uint8)
    for place in range(len(usable)):
        if usable[place]:
            weight[place : ends[place] + 1] = 1
    return weight


@kernel
def _lengths(powers: Hashes) -> Integers:
    """Return the number of characters of words with these powers, which are small ones as a rule."""
    lengths = np.zeros(len(powers), np.int64)
    for word in range(len(powers)):
        power = np.uint64(1)
        while power != powers[word] and lengths[word] < 64:
            power *= BASE
            lengths[word] += 1
    return lengths
