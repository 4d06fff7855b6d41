"""Which encoding undeclared bytes are in: the one under which they are the most probable text.

For each of some eighty languages there are costs, in quarters of a bit, of a character after another; an encoding is
judged with each language that is written in it. In ASCII's supersets of one byte the same pairs of bytes hold a
non-ASCII one whatever the encoding, so the sums are comparable; in those of several bytes each character has a cost of
its own, known from texts or from the level of the national standard that it stands in. What an encoding is worth
before anything was read is a cost too, so that a page with one curly quote is windows-1252.

Statistics are of the first three fifths of each text of the Universal Declaration of Human Rights (public domain),
made by `python -m benchmarks.make_encoding_statistics`. Escapes (ISO-2022-JP, HZ) and the zeros of UTF-16 and UTF-32
are looked for first.

Invariants: integers only; at most `SAMPLE` bytes are judged. Cost: about 1 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel
from transforms.web_codecs import decode_as

SAMPLE: Final = 1 << 18
"""Bytes of a page that are looked at."""
LEAST_HIGH: Final = 4096
"""Non-ASCII bytes that are enough: what follows is not looked at."""

ASCII_OTHER: Final = 0
"""Symbols of the statistics: ASCII but letters; then a to z at 1 to 26, the kinds below, letters of a language."""
NO_BREAK: Final = 27
TYPOGRAPHIC: Final = 28
FOREIGN: Final = 29
SYMBOL: Final = 30
BAD: Final = 31
APOSTROPHE: Final = 32
LETTERS: Final = 33

_TYPOGRAPHIC: Final = frozenset("‘“”„‚«»‹›–—…·•©®°™€£§´¨¿¡ªº،؛؟")
_ESCAPES: Final = (
    (b"\x1b$B", "iso-2022-jp"),
    (b"\x1b$@", "iso-2022-jp"),
    (b"\x1b$)C", "iso-2022-kr"),
    (b"~{", "hz-gb-2312"),
)
_SAME: Final = {"gbk": "gb18030", "iso-8859-8": "iso-8859-8-i"}
SURE: Final = 1000
"""Bits by which zeros or escapes make an encoding more probable than any other."""
_HUGE: Final = 1 << 40

Symbols = npt.NDArray[np.uint8]
Costs = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Detected:
    """An encoding, and how many bits less probable the best other text is."""

    encoding: str
    margin: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of languages; `SINGLE` encodings by combination (encoding, language), others by encoding."""

    encodings: tuple[str, ...]
    """Of each combination."""
    symbols: Symbols
    """Combination, byte → symbol."""
    languages: npt.NDArray[np.int64]
    """Combination → row of `costs`."""
    priors: npt.NDArray[np.int64]
    costs: Costs
    """Language, symbol, symbol after it → quarters of a bit."""
    wide: dict[str, tuple[int, Costs]]
    """Encoding of several bytes → its prior, and the cost of each code point of the basic plane."""


def symbol_of(character: str, alphabet: str) -> int:
    """Return the symbol of `character` in a language whose letters beyond ASCII are `alphabet`."""
    if character < "\x80":
        letter = ord(character) | 0x20
        return letter - 0x60 if 0x61 <= letter <= 0x7A and character > "@" else ASCII_OTHER
    if (place := alphabet.find(character)) >= 0:
        return LETTERS + place
    if character == "\u00a0":
        return NO_BREAK
    if character == "\u2019":
        return APOSTROPHE
    if character in _TYPOGRAPHIC:
        return TYPOGRAPHIC
    if character <= "\u009f" or character == "\ufffd" or "\ue000" <= character <= "\uf8ff":
        return BAD
    return SYMBOL if "\u2000" <= character <= "\u2dff" or character < "\u00c0" or character in "×÷" else FOREIGN


def detect(payload: bytes) -> Detected:
    """Return the most probable encoding of `payload`, which is not UTF-8."""
    if certain := _by_zeros(payload) or _by_escapes(payload):
        return Detected(certain, SURE)
    costs = judge(payload)
    ranked = sorted(costs, key=lambda encoding: (costs[encoding], encoding))
    return Detected(ranked[0], _margin(payload, ranked, costs) // 4)


def compare(payload: bytes, encoding: str, other: str) -> int:
    """Return by how many bits the text of `payload` in `encoding` is more probable than in `other`; 0: not known."""
    if certain := _by_zeros(payload) or _by_escapes(payload):
        return SURE * ((certain == encoding) - (certain == other))
    costs = judge(payload)
    cost, other_cost = (costs.get(_SAME.get(name, name)) for name in (encoding, other))
    return 0 if cost is None or other_cost is None else (other_cost - cost) // 4


def judge(payload: bytes) -> dict[str, int]:
    """Return encoding → cost of `payload` in quarters of a bit, for all encodings that extend ASCII by bytes."""
    statistics, sample = load_statistics(), _sample(payload)
    pairs, counts = _high_pairs(sample)
    if not len(pairs):
        return {"windows-1252": 0}
    totals = (
        _single_costs(pairs, counts, statistics.symbols, statistics.languages, statistics.costs) + statistics.priors
    )
    best: dict[str, int] = {}
    for encoding, total in zip(statistics.encodings, totals.tolist(), strict=True):
        best[encoding] = min(total, best.get(encoding, _HUGE))
    for encoding, (prior, costs) in statistics.wide.items():
        best[encoding] = prior + _wide_cost(decode_as(encoding, sample), costs)
    return best


def _by_escapes(payload: bytes) -> str | None:
    """Return the encoding of seven bits that the escapes of `payload` are of."""
    for escape, encoding in _ESCAPES:
        if escape in payload and payload.isascii() and "\ufffd" not in decode_as(encoding, payload):
            return encoding
    return None


def _by_zeros(payload: bytes) -> str | None:
    """Return the UTF-16 or UTF-32 that ASCII among the characters of `payload` gives away by its zeros."""
    sample = np.frombuffer(payload[: min(len(payload), 4096) & ~3], np.uint8).reshape(-1, 4)
    if len(sample) < 2:
        return None
    zeros, size = (sample == 0).sum(axis=0).tolist(), len(sample)
    for name, order in (("utf-32le", zeros), ("utf-32be", zeros[::-1])):
        if order[3] == size and 10 * order[2] >= 9 * size and 2 * order[0] < size:
            return name
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    if 10 * max(even, odd) >= size and 8 * min(even, odd) <= max(even, odd):
        return "utf-16le" if odd > even else "utf-16be"
    return None


def _sample(payload: bytes) -> bytes:
    """Return the beginning of `payload` up to `SAMPLE` bytes or `LEAST_HIGH` non-ASCII ones."""
    sample = payload[:SAMPLE]
    high = np.flatnonzero(np.frombuffer(sample, np.uint8) >= 0x80)
    return sample if len(high) <= LEAST_HIGH else sample[: int(high[LEAST_HIGH])]


def _high_pairs(sample: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the pairs of bytes that hold a non-ASCII one (first × 256 + second), and how often each is there."""
    values = np.frombuffer(b" " + sample + b" ", np.uint8).astype(np.int64)
    high = values >= 0x80
    chosen = high[:-1] | high[1:]
    counts = np.bincount((values[:-1] << 8 | values[1:])[chosen], minlength=1 << 16)
    pairs = np.flatnonzero(counts)
    return pairs, counts[pairs]


@kernel
def _single_costs(
    pairs: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    symbols: Symbols,
    languages: npt.NDArray[np.int64],
    costs: Costs,
) -> npt.NDArray[np.int64]:
    totals = np.zeros(len(languages), np.int64)
    for row in range(len(languages)):
        language = languages[row]
        for at in range(len(pairs)):
            first, second = symbols[row, pairs[at] >> 8], symbols[row, pairs[at] & 255]
            totals[row] += counts[at] * np.int64(costs[language, first, second])
    return totals


def _wide_cost(text: str, costs: Costs) -> int:
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    points = points[points >= 0x80]
    astral = int((points > 0xFFFF).sum())
    return int(costs[points[points <= 0xFFFF]].astype(np.int64).sum()) + 88 * astral


def _margin(payload: bytes, ranked: list[str], costs: dict[str, int]) -> int:
    """Return by how much the best encoding is cheaper than the best that gives another text."""
    sample = _sample(payload)
    text = decode_as(ranked[0], sample)
    for other in ranked[1:6]:
        if decode_as(other, sample) != text:
            return costs[other] - costs[ranked[0]]
    return costs[ranked[min(6, len(ranked) - 1)]] - costs[ranked[0]]


@cache
def load_statistics() -> Statistics:
    """Return the packaged statistics."""
    with np.load(Path(__file__).with_name("encoding_statistics.npz")) as file:
        alphabets = [str(alphabet) for alphabet in file["alphabets"]]
        encodings, languages = [str(name) for name in file["encodings"]], file["languages"].astype(np.int64)
        wide_names = [str(name) for name in file["wide_names"]]
        wide = dict(zip(wide_names, zip(file["wide_priors"].tolist(), file["wide"], strict=True), strict=True))
        costs, priors = file["costs"], file["priors"].astype(np.int64)
    every = bytes(range(256))
    symbols = np.empty((len(encodings), 256), np.uint8)
    for row, (encoding, language) in enumerate(zip(encodings, languages.tolist(), strict=True)):
        symbols[row] = [symbol_of(character, alphabets[language]) for character in decode_as(encoding, every)]
    return Statistics(tuple(encodings), symbols, languages, priors, costs, wide)
