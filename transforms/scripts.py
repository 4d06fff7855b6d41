"""The script that a text is written in, by its letters: an ISO 15924 code from pinned tables.

Scripts are those of Unicode (UAX #24) for letters; digits, marks, punctuation and emoji have none. A text's script is
the one with most letters, ties by name; the scripts of East Asia are taken together first:

- Kore: at least half of them is Hangul;
- Jpan: at least one in twenty is Hiragana or Katakana;
- Hans, Hant: at least `LEAST_TELLING` characters are of simplified (traditional) Chinese only, and four times as many
  as of the other kind; else Hani, Chinese characters that do not tell.

Which characters tell stands in `benchmarks.make_script_tables`: 2,380 of GB 2312 that Big5 lacks, and 2,073 of Big5's
frequent ones that GB 2312 lacks, so a sentence or two is enough.

The *weight* of a text says how much there is to tell a language by: a letter counts 1, an ideograph, kana or Hangul
syllable `IDEOGRAPH_WEIGHT`.

Invariants: integers only; the answer for a text depends on that text. Cost: one pass, some 800 MB/s on one core.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from transforms.byte_blocks import BLOCK, bits_between, count_bits
from transforms.kernels import kernel
from transforms.segmentation import Bytes, Int, Positions, decode
from transforms.unicode_tables import CODE_POINTS

LEAST_TELLING: Final = 2
IDEOGRAPH_WEIGHT: Final = 4

with np.load(Path(__file__).with_name("script_tables.npz")) as _file:
    NAMES: Final[tuple[str, ...]] = tuple(map(str, _file["names"].tolist()))
    """Code of each value of `SCRIPT`; "" for what is no letter. After the table's own stand Jpan and Kore."""

    SCRIPT: Final[npt.NDArray[np.uint8]] = np.repeat(_file["values"], np.diff(_file["starts"], append=CODE_POINTS))
    """Per code point its script; Han characters of one way of writing Chinese are Hans or Hant, the others Hani."""
    SCRIPT.flags.writeable = False

CODES: Final = (*NAMES, "Jpan", "Kore")
"""Codes of what `Scripts.script` holds."""

_LATN: Final = NAMES.index("Latn")
_HANS: Final = NAMES.index("Hans")
_HANT: Final = NAMES.index("Hant")
_HANI: Final = NAMES.index("Hani")
_HIRA: Final = NAMES.index("Hira")
_KANA: Final = NAMES.index("Kana")
_HANG: Final = NAMES.index("Hang")
_BOPO: Final = NAMES.index("Bopo")
_JPAN: Final = len(NAMES)
_KORE: Final = len(NAMES) + 1
_VALUES: Final = len(NAMES)


@dataclass(frozen=True, slots=True)
class Scripts:
    """Per span: `script` (index into `CODES`, 0 where there is no letter) and `weight`."""

    script: npt.NDArray[np.uint8]
    weight: Positions

    def names(self) -> list[str | None]:
        """Return the codes; None where there is no letter."""
        codes = (None, *CODES[1:])
        return [codes[value] for value in self.script.tolist()]


def find_scripts(data: Bytes, starts: Positions, ends: Positions) -> Scripts:
    """Return the scripts of the texts data[starts[i]:ends[i]], valid UTF-8."""
    script, weight = np.zeros(len(starts), np.uint8), np.zeros(len(starts), np.int64)
    _find_scripts(data, starts, ends, SCRIPT, script, weight)
    return Scripts(script, weight)


def digest() -> str:
    """Return the digest of the tables (BLAKE2b, 16 bytes, hex)."""
    return hashlib.blake2b(",".join(NAMES).encode() + SCRIPT.tobytes(), digest_size=16).hexdigest()


@kernel
def _find_scripts(
    data: Bytes,
    starts: Positions,
    ends: Positions,
    table: npt.NDArray[np.uint8],
    script: npt.NDArray[np.uint8],
    weight: Positions,
) -> None:
    counts = np.zeros(_VALUES, np.int64)
    for row in range(len(starts)):
        counts[:] = 0
        place, end = starts[row], ends[row]
        while place < end:
            stop = min(place + BLOCK, end)
            if (
                stop - place == BLOCK and bits_between(data, place, 0, 0x80, 0x80) == 0
            ):  # all letters of ASCII are Latin
                counts[_LATN] += count_bits(bits_between(data, place, 0x20, 0x61, 26))
                place = stop
            while place < stop:
                byte = data[place]
                if byte < 0x80:
                    counts[table[byte]] += 1
                    place += 1
                else:
                    code_point, place = decode(data, place, end)
                    counts[table[code_point]] += 1
        script[row], weight[row] = _dominant(counts)


@kernel
def _dominant(counts: Positions) -> tuple[Int, Int]:
    """Return the script and the weight of a text whose letters are counted by script."""
    han = counts[_HANI] + counts[_HANS] + counts[_HANT] + counts[_BOPO]
    kana = counts[_HIRA] + counts[_KANA]
    east = han + kana + counts[_HANG]
    best, most, letters = 0, np.int64(0), np.int64(0)
    for value in range(1, len(counts)):
        letters += counts[value]
        is_east = value in (_HANI, _HANS, _HANT, _BOPO, _HIRA, _KANA, _HANG)
        if counts[value] > most and not is_east:
            best, most = value, counts[value]
    if east > most:
        best = _east_asian(counts, han, kana)
    return best, letters + (IDEOGRAPH_WEIGHT - 1) * east


@kernel
def _east_asian(counts: Positions, han: Int, kana: Int) -> int:
    if 2 * counts[_HANG] >= han + kana + counts[_HANG]:
        return _KORE
    if 20 * kana >= han + kana:
        return _JPAN
    if counts[_HANS] >= LEAST_TELLING and counts[_HANS] >= 4 * counts[_HANT]:
        return _HANS
    if counts[_HANT] >= LEAST_TELLING and counts[_HANT] >= 4 * counts[_HANS]:
        return _HANT
    return _HANI


def script_of(text: str) -> str | None:
    """Return the script of one text, None where it has no letter."""
    content: npt.NDArray[Any] = np.frombuffer(text.encode(), np.uint8)
    bounds = np.array([0, len(content)], np.int64)
    return find_scripts(content, bounds[:1], bounds[1:]).names()[0]
