"""Telling terms and names of topics: words that stand in many documents of a topic and in few others.

A word is compared within one language, that of most documents of the topic: so "und" tells no German topic from other
German ones, and "import" tells Python from prose. A word in the share p of the topic's documents and in the share q of
the others scores p × log2(p / q). Where nearly all documents of the language are in one topic nothing can be compared:
then all other documents stand for the others, and words in more than half of the topic's come last, as function words.
`STOP_WORDS`, words of fewer than three letters and words that do not begin with a letter are never terms; in scripts
whose words are characters, pairs of characters are.

Invariants: terms and names depend on the multiset of (text, topic, language) alone; integers only; the names of a set
of topics are all different.
Cost: two passes over the texts, some 50 MB/s; memory: the words of a few hundred buckets per topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.embedding import BUCKETS, bucket_of, document_frequencies, pair_hash, sixteenths
from transforms.kernels import kernel
from transforms.segmentation import Bytes, Flags, Positions, find_words
from transforms.shingles import PORTION, portions
from transforms.spherical_kmeans import Numbers
from transforms.stop_words import CHARACTERS, STOP_WORDS
from transforms.unicode_tables import ALPHABETIC
from transforms.word_hashes import FOLDING, Hashes, hash_words

TERMS: Final = 10
"""Terms that are told of each topic."""

IN_A_NAME: Final = 3
_CANDIDATES: Final = 400  # buckets of each topic whose words are looked at
_MILLION: Final = 1_000_000
_LONGEST: Final = 24
_UNSPACED: Final = 0x0E00  # Thai, Lao, Myanmar, Khmer, Han, Kana, Hangul lie above: two characters are enough
_VARIANT: Final = 5  # letters at the beginning in which a term and a longer form of it agree


@dataclass(frozen=True, slots=True)
class _Scope:
    """The documents that say what a topic is about, the others that its words are compared with, and their buckets."""

    inside: Positions
    outside: Positions
    compares: bool  # with documents of its own language
    within: Numbers  # documents inside with each bucket
    without: Numbers  # documents outside


def telling_terms(
    texts: pa.LargeStringArray, labels: Numbers, count: int, languages: Sequence[str | None] | None = None
) -> list[tuple[str, ...]]:
    """Return the most telling words of each topic, the most telling first.

    Args:
        texts: documents.
        labels: the topic of each, 0 … count - 1.
        count: of topics.
        languages: of each document; None, or null for a document, is a language of its own.
    """
    scopes = list(_scopes(texts, labels, count, languages))
    buckets = [_candidates(scope) for scope in scopes]
    member = np.zeros(BUCKETS, np.bool_)
    for found in buckets:
        member[found] = True
    counted = _Counted(texts, member)
    return [counted.terms(scope) for scope in scopes]


def names_of(terms: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return a name for each topic: its first plain terms joined with "-", more where two would be equal.

    Identifiers of several parts ("java.util", "c:function") are terms, and stand in a name where there is nothing else.
    """
    names: list[str] = []
    for number, mine in enumerate(terms):
        distinct = _without_variants([term for term in mine if not set(term) & set(".:")] or mine)
        tries = ["-".join(distinct[:size]) for size in range(IN_A_NAME, len(distinct) + 1)] or ["-".join(distinct)]
        tries.append(f"{tries[0] or 'topic'}-{number}")
        names.append(next(name for name in tries if name and name not in names))
    return tuple(names)


def _without_variants(terms: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for term in terms:
        if not any(_begin_alike(term, other) for other in kept):
            kept.append(term)
    return kept


def _begin_alike(one: str, other: str) -> bool:
    size = min(len(one), len(other), _VARIANT)
    return one[:size] == other[:size]


def _scopes(
    texts: pa.LargeStringArray, labels: Numbers, count: int, languages: Sequence[str | None] | None
) -> Iterator[_Scope]:
    names = [""] * len(labels) if languages is None else [language or "" for language in languages]
    codes = {name: code for code, name in enumerate(sorted(set(names)))}
    spoken = np.array([codes[name] for name in names], np.int64)
    counted: dict[int, Numbers] = {}
    for topic in range(count):
        mine = labels == topic
        main = int(np.bincount(spoken[mine], minlength=1).argmax())
        inside, outside = np.flatnonzero(mine & (spoken == main)), np.flatnonzero(~mine & (spoken == main))
        within = left = _frequencies(texts, inside)
        compares = 4 * len(outside) >= len(inside)
        if not compares:
            outside, main, left = np.flatnonzero(~mine), -1, _frequencies(texts, np.flatnonzero(mine))
        if main not in counted:
            counted[main] = _frequencies(texts, np.flatnonzero((spoken == main) | (main < 0)))
        yield _Scope(inside, outside, compares, within, counted[main] - left)


def _frequencies(texts: pa.LargeStringArray, documents: Positions) -> Numbers:
    return document_frequencies(texts.take(pa.array(documents)))


def _candidates(scope: _Scope) -> Positions:
    """Return buckets in which words may tell: in a greater share of the documents inside than of those outside."""
    more = scope.within * _MILLION // max(len(scope.inside), 1)
    more -= scope.without * _MILLION // max(len(scope.outside), 1)
    places = np.flatnonzero((scope.within >= _least(scope)) & (more > 0))
    return places[np.argsort(-more[places], kind="stable")[:_CANDIDATES]]


def _least(scope: _Scope) -> int:
    """Return in how many documents of a topic a term stands at least: two, and a fiftieth of them."""
    return max(2, len(scope.inside) // 50)


class _Counted:
    """In which documents the words of chosen buckets stand."""

    def __init__(self, texts: pa.LargeStringArray, member: Flags) -> None:
        """Find the words; nothing of them but their first form is kept as text."""
        self.words: dict[int, str] = {}
        self.documents = len(texts)
        refused: set[int] = set()
        hashes, documents = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
        for part in _found(texts, member):
            self._name(part, refused)
            known = np.isin(part.hashes, np.array(list(self.words), np.uint64))
            pairs = np.unique(np.stack([part.hashes[known], part.documents[known].astype(np.uint64)]), axis=1)
            hashes.append(pairs[0])
            documents.append(pairs[1].astype(np.int64))
        self.hashes, self.places = np.unique(np.concatenate(hashes), return_inverse=True)
        self.owners = np.concatenate(documents)

    def _name(self, part: _Found, refused: set[int]) -> None:
        new, first = np.unique(part.hashes, return_index=True)
        for value, place in zip(new.tolist(), first.tolist(), strict=True):
            if value not in self.words and value not in refused:
                word = _folded(part.data[part.starts[place] : part.ends[place]].tobytes().decode())
                if _is_term(word, bool(part.pairs[place])):
                    self.words[value] = word
                else:
                    refused.add(value)

    def terms(self, scope: _Scope) -> tuple[str, ...]:
        """Return the most telling words of a topic."""
        inside, outside = self._counts(scope.inside), self._counts(scope.outside)
        scored = []
        for place in np.flatnonzero(inside >= _least(scope)).tolist():
            score = _score(int(inside[place]), len(scope.inside), int(outside[place]), len(scope.outside))
            if score > 0:
                late = not scope.compares and bool(2 * inside[place] > len(scope.inside))
                scored.append((late, -score, self.words[int(self.hashes[place])]))
        return tuple(word for *_, word in sorted(scored)[:TERMS])

    def _counts(self, documents: Positions) -> Numbers:
        mine = np.zeros(self.documents, np.bool_)
        mine[documents] = True
        return np.bincount(self.places[mine[self.owners]], minlength=len(self.hashes))


def _score(inside: int, documents: int, outside: int, others: int) -> int:
    """Return p × log2(p / q) in whole millionths of sixteenths; one more document of the others has the word."""
    return inside * _MILLION // documents * sixteenths(inside * (others + 1), (outside + 1) * documents)


def _folded(word: str) -> str:
    return "".join(chr(int(FOLDING[ord(character)])) for character in word)


def _is_term(word: str, is_pair: bool) -> bool:
    if word in STOP_WORDS or len(word) > _LONGEST or not ALPHABETIC[ord(word[0])]:
        return False
    unspaced = all(ord(character) >= _UNSPACED for character in word)
    if unspaced:
        return len(word) > 1 and CHARACTERS.isdisjoint(word)
    return len(word) > 2 and not is_pair


@dataclass(frozen=True, slots=True)
class _Found:
    """Words of chosen buckets, and pairs of words that touch: whose document, hash, place in the buffer."""

    data: Bytes
    documents: Positions
    hashes: Hashes
    starts: Positions
    ends: Positions
    pairs: npt.NDArray[np.bool_]


def _found(texts: pa.LargeStringArray, member: Flags) -> Iterator[_Found]:
    for first, last in portions(texts, PORTION):
        words = find_words(texts.slice(first, last - first))
        found = _select(words.documents, words.starts, words.ends, hash_words(words), member)
        yield _Found(words.data, found[0] + first, *found[1:])


@kernel
def _select(
    documents: Positions, starts: Positions, ends: Positions, hashes: Hashes, member: Flags
) -> tuple[Positions, Hashes, Positions, Positions, Flags]:
    owners, values = np.empty(2 * len(starts), np.int64), np.empty(2 * len(starts), np.uint64)
    begins, stops = np.empty(2 * len(starts), np.int64), np.empty(2 * len(starts), np.int64)
    pairs = np.zeros(2 * len(starts), np.bool_)
    count = 0
    for document in range(len(documents) - 1):
        for word in range(documents[document], documents[document + 1]):
            if member[bucket_of(hashes[word])]:
                owners[count], values[count] = document, hashes[word]
                begins[count], stops[count] = starts[word], ends[word]
                count += 1
            if word > documents[document] and ends[word - 1] == starts[word]:
                value = pair_hash(hashes[word - 1], hashes[word])
                if member[bucket_of(value)]:
                    owners[count], values[count] = document, value
                    begins[count], stops[count] = starts[word - 1], ends[word]
                    pairs[count] = True
                    count += 1
    return owners[:count], values[:count], begins[:count], stops[:count], pairs[:count]
