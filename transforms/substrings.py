"""Spans of at least k words that texts share, byte by byte: all of them, found without comparing texts with each other.

    anchors    per batch      some hashes of word runs of each text                       → exchange by hash
    shared     per partition  those that occur more than once                            → exchange by document
    windows    per batch      digests of the runs of k words around shared anchors        → exchange by digest
    later_ones per partition  (`transforms.parts`, with lengths) those but for the first  → exchange by document
    covered    per batch      what those windows cover: pieces to cut (`transforms.cutting`)

A window is k consecutive words and the bytes between them. Anchors are chosen by winnowing (Schleimer, Wilkerson, Aiken
2003): of the hashes of `gram` words within a window the lowest, the last one of equals. So equal windows have the same
anchor at the same place in them, and no window that occurs twice is missed; about 2 words in k - gram become anchors.
Windows are compared by 16 bytes of BLAKE3 of their bytes: equal digests, equal bytes.

A window goes if an equal one comes first in keep order, or first in its own document without overlapping it (so of "0 0
0 …" one window stays). Each word that goes therefore stays at an earlier place, in the same k words: that place may go
for a still earlier one, but the first of them stays. Repeats that arise by cutting are not looked for.

Invariants: what is cut depends on the texts and the keep order, not on batches or partitions. Pieces begin and end at
borders of words, so never within a character, and lie in one document.
Cost: 160 MB/s for anchors, as much for windows, .2 µs for the digest of each. 24 bytes per anchor and per window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transforms.cutting import Pieces, cut_outcome
from transforms.eight_bytes import BYTE, load, load_some
from transforms.kernels import kernel
from transforms.many_digests import short_span_digests
from transforms.outcome import Outcome
from transforms.segmentation import Bytes, Flags, Positions, Words, find_words, text_buffers
from transforms.shingles import NOTHING, PORTION, portions
from transforms.word_hashes import FACTOR, HALF, START, Hashes, mix


@dataclass(frozen=True, slots=True)
class RepeatedSpans:
    """Spans of at least `words` words go but for their first occurrence; `gram` words make the hash of an anchor.

    A longer `gram` meets fewer other texts by chance and makes more anchors. The default of 50 words is that of Lee et
    al. (2022, "Deduplicating Training Data Makes Language Models Better"), who count tokens.
    """

    words: int = 50
    gram: int = 20

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ValueError: a field is out of its range.
        """
        if not 2 <= self.words <= 10_000 or not 1 <= self.gram < self.words:
            raise ValueError(
                f"words is from 2 to 10,000, gram at least 1 and below words: got {self.words} and {self.gram}"
            )

    @property
    def reason(self) -> str:
        """The reason of edits in the ledger."""
        return "repeated spans"


@dataclass(frozen=True, slots=True)
class Anchors:
    """Anchors of n texts: `document`, the number of their first word in the batch `place`, and `hash`; by place."""

    document: Positions
    place: Positions
    hash: Hashes


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of n texts: `document`, and the bytes starts[i]:ends[i] of the batch's buffer, `data`; by place."""

    data: Bytes
    document: Positions
    starts: Positions
    ends: Positions

    @property
    def lengths(self) -> Positions:
        """The bytes of each window."""
        return self.ends - self.starts

    def digests(self) -> pa.FixedSizeBinaryArray:
        """Return the digest of each window's bytes."""
        return short_span_digests(self.data, self.starts, self.ends)


def anchors(text: pa.LargeStringArray, spans: RepeatedSpans) -> Anchors:
    """Return the anchors of `text`. A text of fewer than `words` words has none."""
    found = [Anchors(np.zeros(0, np.int64), np.zeros(0, np.int64), NOTHING)]
    for part in _parts(text, spans):
        places = part.lowest[part.lowest >= 0]  # ascending, as those of later windows are
        places = places[np.concatenate([[True], places[1:] != places[:-1]])[: len(places)]]
        found.append(Anchors(part.texts_of(places), places + part.word, part.grams[places]))
    columns = ([getattr(each, name) for each in found] for name in ("document", "place", "hash"))
    return Anchors(*(np.concatenate(column) for column in columns))


def shared(hashes: Hashes) -> Flags:
    """Return which rows have a hash that another row has. All rows of a hash are here."""
    _, groups, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
    return np.asarray(sizes[groups.reshape(-1)] > 1)


def windows(text: pa.LargeStringArray, spans: RepeatedSpans, places: Positions) -> Windows:
    """Return the windows of `text` whose anchor is among `places` (sorted): only they may occur elsewhere."""
    none = np.zeros(0, np.int64)
    found = [(none, none, none)]
    for part in _parts(text, spans):
        mine = places[np.searchsorted(places, part.word) : np.searchsorted(places, part.word + len(part.grams))]
        wanted = np.zeros(len(part.grams) + 1, np.bool_)
        wanted[mine - part.word] = True
        first = np.flatnonzero(wanted[part.lowest])  # -1 is the last entry, which no anchor has
        ends = part.words.ends[first + spans.words - 1]
        found.append((part.texts_of(first), part.words.starts[first], ends))
    columns = zip(*found, strict=True)
    return Windows(text_buffers(text)[0], *(np.concatenate(column) for column in columns))


def covered(found: Windows, goes: Flags, texts: int) -> Pieces:
    """Return what those of the windows of `texts` texts cover that go: touching and overlapping ones joined."""
    documents, starts, ends = (column[goes] for column in (found.document, found.starts, found.ends))
    new = np.ones(len(starts), np.bool_)
    new[1:] = (starts[1:] > ends[:-1]) | (documents[1:] != documents[:-1])
    last = np.append(new[1:], True)[: len(new)]
    offsets = np.searchsorted(documents[new], np.arange(texts + 1))
    return Pieces(offsets.astype(np.int64), starts[new], ends[last])


def cut_spans(batch: pa.RecordBatch, found: Windows, goes: Flags, spans: RepeatedSpans) -> Outcome:
    """Return `batch` without what those of its `windows` cover that go."""
    return cut_outcome(batch, covered(found, goes, batch.num_rows), "RepeatedSpans", spans.reason)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of the texts of a batch, from number `text` on, of which words `word` and following are those of `words`."""

    text: int
    word: int
    words: Words
    grams: Hashes
    lowest: Positions

    def texts_of(self, words: Positions) -> Positions:
        """Return the number in the batch of the text that each word is in."""
        return np.searchsorted(self.words.documents, words, "right") - 1 + self.text


def _parts(text: pa.LargeStringArray, spans: RepeatedSpans) -> Iterator[_Part]:
    """Yield the words, the hashes of their grams and the lowest gram of each window, some texts at a time."""
    word = 0
    for first, last in portions(text, PORTION):
        words = find_words(text.slice(first, last - first))
        hashes = _token_hashes(words.data, words.documents, words.starts, words.ends)
        grams = _gram_hashes(hashes, words.documents, np.int64(spans.gram))
        lowest = _lowest(grams, words.documents, np.int64(spans.words), np.int64(spans.gram))
        yield _Part(first, word, words, grams, lowest)
        word += len(grams)


@kernel
def _token_hashes(data: Bytes, documents: Positions, starts: Positions, ends: Positions) -> Hashes:
    """Return a hash of the bytes from each word's start to the next word's; of the last word of a text, to its end."""
    hashes = np.empty(len(starts), np.uint64)
    for document in range(len(documents) - 1):
        for word in range(documents[document], documents[document + 1]):
            end = starts[word + 1] if word + 1 < documents[document + 1] else ends[word]
            value, position, last = START, np.uint64(starts[word]), np.uint64(end)
            while last - position >= BYTE:
                value = (value ^ load(data, position)) * FACTOR
                value ^= value >> HALF
                position += BYTE
            filled = last - position
            hashes[word] = mix((value ^ load_some(data, position, filled)) * FACTOR ^ filled)
    return hashes


@kernel
def _gram_hashes(hashes: Hashes, documents: Positions, gram: np.int64) -> Hashes:
    """Return a hash of the `gram` tokens from each one on, by a rolling polynomial; 0 where the text ends before."""
    grams = np.zeros(len(hashes), np.uint64)
    power = np.uint64(1)
    for _ in range(gram):
        power *= FACTOR
    for document in range(len(documents) - 1):
        first, last = documents[document], documents[document + 1]
        value = np.uint64(0)
        for word in range(first, last):
            value = value * FACTOR + hashes[word]
            if word - first >= gram:
                value -= power * hashes[word - gram]
            if word - first >= gram - 1:
                grams[word - gram + 1] = mix(value)
    return grams


@kernel
def _lowest(grams: Hashes, documents: Positions, words: np.int64, gram: np.int64) -> Positions:
    """Return, for each window by its first word, the place of its lowest gram, the last of equals; -1 for no window.

    A window has words - 1 tokens with the bytes behind them, so words - gram grams. The places that may still become
    lowest wait in a queue, ascending in place and in hash.
    """
    lowest = np.full(len(grams), -1, np.int64)
    size = words - gram
    queue = np.empty(size, np.int64)
    for document in range(len(documents) - 1):
        first, last = documents[document], documents[document + 1]
        head, count = np.int64(0), np.int64(0)
        for place in range(first, last - gram):  # the last token of a text has no bytes behind it
            while count > 0 and grams[queue[(head + count - 1) % size]] >= grams[place]:
                count -= 1
            queue[(head + count) % size] = place
            count += 1
            window = place - size + 1
            if window >= first:
                lowest[window] = queue[head]
                if queue[head] == window:
                    head = (head + 1) % size
                    count -= 1
    return lowest
