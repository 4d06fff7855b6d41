"""Best-fit packing: which documents share a sequence, so that as few as possible are cut and little is padding.

Best-fit decreasing (Johnson, "Near-optimal bin packing algorithms", 1973; for language models Ding et al., "Fewer
truncations improve language modeling", ICML 2024): documents, longest first, ties in the order of the cache, go each to
the sequence with the least room that still holds them, of equal ones to the one used last, or else open a new one. A
document longer than a sequence fills ⌊its length / n⌋ sequences of its own, and its rest is packed like a document.
No token is left out, and no document that fits is cut.

Invariants: a pure function of the lengths and n; every token lies in one sequence. Cost: about 30 ns a document (sorted
by counting, room found through a set of bits), 12 bytes a piece and 8 a sequence.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from curate.formats import Format, FormatError
from curate.store import json_line
from mixtures.errors import PlanError
from transforms.kernels import kernel

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]

KIND: Final = "packing"
FORMAT: Final = Format(1, "compile the mixture again")

_PLACE_OF_BIT: Final = np.zeros(67, np.int64)
_PLACE_OF_BIT[[(1 << bit) % 67 for bit in range(64)]] = np.arange(64)
"""Powers of two below 2^64 leave different remainders modulo 67."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Sequences of `length` tokens made of pieces of the token stream of a component.

    Sequence s holds pieces firsts[s] to firsts[s + 1] - 1 in the order of the stream, then padding; piece p is tokens
    starts[p] to starts[p] + lengths[p] - 1 of the stream. `cut` counts documents longer than a sequence.
    """

    length: int
    tokens: int
    cut: int
    starts: Ints = field(repr=False)
    lengths: Ints = field(repr=False)
    firsts: Ints = field(repr=False)
    digest: str = field(init=False)
    """BLAKE3 of the packing: the canonical JSON of its numbers, a line feed, its arrays as little-endian int64."""

    def __post_init__(self) -> None:
        summed = blake3(json_line(self._header()))
        for array in (self.starts, self.lengths, self.firsts):
            summed.update(_bytes(array))
        object.__setattr__(self, "digest", summed.hexdigest())

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self.firsts) - 1

    @property
    def padding(self) -> int:
        """Tokens of padding in all sequences."""
        return len(self) * self.length - self.tokens

    def spans(self, sequence: int) -> list[tuple[int, int]]:
        """Return the first token and the one after the last of each piece of `sequence`.

        Raises:
            IndexError: there is no such sequence.
        """
        if not 0 <= sequence < len(self):
            raise IndexError(f"sequence {sequence} is not in range({len(self)})")
        pieces = slice(self.firsts[sequence], self.firsts[sequence + 1])
        starts, lengths = self.starts[pieces].tolist(), self.lengths[pieces].tolist()
        return [(start, start + length) for start, length in zip(starts, lengths, strict=True)]

    def sequences_of(self, start: int, stop: int) -> list[int]:
        """Return the sequences with any of the tokens `start` to `stop` - 1, ascending. Cost: one pass over pieces."""
        pieces = np.flatnonzero((self.starts < stop) & (self.starts + self.lengths > start))
        return sorted(set((np.searchsorted(self.firsts, pieces, side="right") - 1).tolist()))

    def to_bytes(self) -> bytes:
        """Return the file of the packing: a line of JSON with its digest, then the arrays."""
        head = json_line({**self._header(), "digest": self.digest})
        return head + b"".join(bytes(_bytes(array)) for array in (self.starts, self.lengths, self.firsts))

    @classmethod
    def from_bytes(cls, content: bytes) -> Packing:
        """Return the packing whose file holds `content`.

        Raises:
            PlanError: it is none, has another format, or was damaged.
        """
        line, _, rest = content.partition(b"\n")
        try:
            said = json.loads(line)
            head = FORMAT.lift(dict(said), "the packing")
            pieces = int(head["pieces"])
            values = np.frombuffer(rest, "<i8").astype(np.int64)
            starts, lengths, firsts = np.split(values, [pieces, 2 * pieces])
            made = cls(head["length"], head["tokens"], head["cut"], starts, lengths, firsts)
            whole = said == {**made._header(), "digest": made.digest}
        except FormatError as error:
            raise PlanError(str(error)) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PlanError(f"not a packing: {error}") from None
        if not whole:
            raise PlanError("damaged packing: what it holds is not what its first line says")
        return made

    def _header(self) -> dict[str, Any]:
        return {
            "kind": KIND, "format": FORMAT.stamp, "length": self.length, "tokens": self.tokens, "cut": self.cut,
            "pieces": len(self.starts), "sequences": len(self),
        }  # fmt: skip


def pack(starts: Ints, tokens: int, length: int) -> Packing:
    """Return the best-fit packing of a stream of `tokens` tokens whose documents begin at `starts` (repeats: empty)."""
    lengths = np.diff(starts, append=tokens).astype(np.int64)
    bins, of = _best_fit(lengths, np.int64(length), _PLACE_OF_BIT)
    cut = int((lengths > length).sum())
    pieces = _pieces(starts.astype(np.int64), lengths, of, np.int64(bins), np.int64(length))
    return Packing(length, tokens, cut, *pieces)


@kernel
def _best_fit(lengths: Ints, length: np.int64, place: Ints) -> tuple[np.int64, Ints]:
    """Return how many sequences are shared, and the sequence of each document's (rest of a) piece, -1 without one."""
    count = len(lengths)
    order, of = _longest_first(lengths, length), np.full(count, -1, np.int64)
    head, following = np.full(length + 1, -1, np.int64), np.empty(count, np.int64)
    words = np.zeros((length >> 6) + 1, np.uint64)
    summary = np.zeros((length >> 12) + 1, np.uint64)
    bins = np.int64(0)
    for at in range(len(order)):
        document = order[at]
        need = lengths[document] % length if lengths[document] > length else lengths[document]
        if need == 0:
            break
        room = _successor(words, summary, need, place)
        if room < 0:
            bin_, room = bins, length
            bins += 1
        else:
            bin_ = head[room]
            head[room] = following[bin_]
            if head[room] < 0:
                _clear(words, summary, room)
        of[document] = bin_
        room -= need
        if room > 0:
            following[bin_] = head[room]
            head[room] = bin_
            words[room >> 6] |= np.uint64(1) << np.uint64(room & 63)
            summary[room >> 12] |= np.uint64(1) << np.uint64(room >> 6 & 63)
    return bins, of


@kernel
def _longest_first(lengths: Ints, length: np.int64) -> Ints:
    """Return documents by what is to be packed of them, longest first; of equal ones the first of the cache first."""
    begin = np.zeros(length + 2, np.int64)
    for document in range(len(lengths)):
        size = lengths[document]
        begin[length - (size % length if size > length else size) + 1] += 1
    for size in range(1, length + 2):
        begin[size] += begin[size - 1]
    order = np.empty(len(lengths), np.int64)
    for document in range(len(lengths)):
        size = lengths[document]
        key = length - (size % length if size > length else size)
        order[begin[key]] = document
        begin[key] += 1
    return order


@kernel
def _successor(words: Bits, summary: Bits, least: np.int64, place: Ints) -> np.int64:
    """Return the smallest number in the set that is at least `least`, or -1."""
    word = least >> 6
    bits = words[word] >> np.uint64(least & 63)
    if bits:
        return least + _lowest(bits, place)
    word += 1
    group = word >> 6
    if group >= len(summary):
        return np.int64(-1)
    bits = summary[group] >> np.uint64(word & 63) << np.uint64(word & 63)
    while not bits:
        group += 1
        if group >= len(summary):
            return np.int64(-1)
        bits = summary[group]
    word = (group << 6) + _lowest(bits, place)
    return (word << 6) + _lowest(words[word], place)


@kernel
def _lowest(bits: np.uint64, place: Ints) -> np.int64:
    """Return the place of the lowest bit that is set."""
    return np.int64(place[(bits & (~bits + np.uint64(1))) % np.uint64(67)])


@kernel
def _clear(words: Bits, summary: Bits, number: np.int64) -> None:
    """Take `number` out of the set."""
    words[number >> 6] &= ~(np.uint64(1) << np.uint64(number & 63))
    if not words[number >> 6]:
        summary[number >> 12] &= ~(np.uint64(1) << np.uint64(number >> 6 & 63))


@kernel
def _pieces(starts: Ints, lengths: Ints, of: Ints, bins: np.int64, length: np.int64) -> tuple[Ints, Ints, Ints]:
    """Return starts and lengths of pieces by sequence, and the first piece of each: shared ones, then whole ones."""
    wholes, pieces = np.int64(0), np.int64(0)
    firsts = np.zeros(bins + 1, np.int64)
    for document in range(len(lengths)):
        wholes += lengths[document] // length if lengths[document] > length else 0
        if of[document] >= 0:
            firsts[of[document] + 1] += 1
            pieces += 1
    firsts = np.cumsum(firsts)
    filled, result = firsts.copy(), np.empty(bins + wholes + 1, np.int64)
    result[: bins + 1] = firsts
    begins, sizes = np.empty(pieces + wholes, np.int64), np.empty(pieces + wholes, np.int64)
    at = bins
    for document in range(len(lengths)):
        begin, size = starts[document], lengths[document]
        while size > length:
            piece = pieces + at - bins
            begins[piece], sizes[piece] = begin, length
            at += 1
            result[at] = piece + 1
            begin, size = begin + length, size - length
        if size == length and of[document] < 0:
            piece = pieces + at - bins
            begins[piece], sizes[piece] = begin, length
            at += 1
            result[at] = piece + 1
        elif of[document] >= 0:
            piece = filled[of[document]]
            filled[of[document]] += 1
            begins[piece], sizes[piece] = begin, size
    return begins, sizes, result


def _bytes(array: Ints) -> memoryview:
    return np.ascontiguousarray(array, "<i8").view(np.uint8).data
