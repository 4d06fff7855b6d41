"""Make transforms/encoding_statistics.npz from ../shared/data/lid/udhr2.parquet: what characters follow which.

Run `python -m benchmarks.make_encoding_statistics`. Of each text of the Universal Declaration of Human Rights (public
domain) the first three fifths are read; `benchmarks.encodings` measures on the rest and on other texts. A new
file needs a new `version` of the transforms that decode, and its digest in tests/transforms/test_encoding_detection.py.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from transforms import encoding_detection as detection
from transforms.encoding_detection import APOSTROPHE, BAD, FOREIGN, LETTERS, NO_BREAK, SYMBOL, TYPOGRAPHIC, symbol_of
from transforms.web_codecs import decode_as

TEXTS: Final = Path("../shared/data/lid/udhr2.parquet")
TARGET: Final = Path(detection.__file__).with_name("encoding_statistics.npz")

LATIN: Final = "windows-1252 iso-8859-15 macintosh"
LANGUAGES: Final = {
    "eng": LATIN, "fra": LATIN, "deu_1901": LATIN, "spa": LATIN, "por_PT": LATIN, "por_BR": LATIN, "ita": LATIN,
    "nld": LATIN, "dan": LATIN, "swe": LATIN, "nob": LATIN, "nno": LATIN, "isl": LATIN + " iso-8859-10",
    "fao": LATIN, "fin": LATIN, "eus": LATIN, "cat": LATIN, "glg": LATIN, "gle": LATIN + " iso-8859-14", "gla": LATIN,
    "als": LATIN, "swh": LATIN, "ind": LATIN, "afr": LATIN, "ast": LATIN, "tgl": LATIN, "ltz": LATIN, "oss": "",
    "pol": "windows-1250 iso-8859-2 iso-8859-16", "ces": "windows-1250 iso-8859-2", "slk": "windows-1250 iso-8859-2",
    "hun": "windows-1250 iso-8859-2 iso-8859-16", "slv": "windows-1250 iso-8859-2", "hrv": "windows-1250 iso-8859-2",
    "bos_latn": "windows-1250 iso-8859-2", "srp_latn": "windows-1250 iso-8859-2", "hsb": "windows-1250 iso-8859-2",
    "ron": "windows-1250 iso-8859-2 iso-8859-16",
    "mlt": "iso-8859-3", "epo": "iso-8859-3", "est": "windows-1257 iso-8859-4 iso-8859-13 iso-8859-15",
    "lav": "windows-1257 iso-8859-4 iso-8859-13", "lit": "windows-1257 iso-8859-4 iso-8859-13",
    "cym": "iso-8859-14", "sme": "iso-8859-10 iso-8859-4", "tur": "windows-1254", "azj_latn": "windows-1254",
    "vie": "windows-1258",
    "rus": "windows-1251 koi8-r iso-8859-5 ibm866 x-mac-cyrillic",
    "bul": "windows-1251 koi8-r iso-8859-5 ibm866 x-mac-cyrillic",
    "ukr": "windows-1251 koi8-u iso-8859-5 x-mac-cyrillic", "bel": "windows-1251 koi8-u iso-8859-5 x-mac-cyrillic",
    "mkd": "windows-1251 iso-8859-5 x-mac-cyrillic", "srp_cyrl": "windows-1251 iso-8859-5 x-mac-cyrillic",
    "ell_monotonic": "windows-1253 iso-8859-7", "heb": "windows-1255 iso-8859-8-i", "ydd": "windows-1255",
    "arb": "windows-1256 iso-8859-6", "pes_1": "windows-1256", "urd": "windows-1256", "uig_arab": "windows-1256",
    "tha": "windows-874",
}  # fmt: skip
"""Text of the Declaration → encodings that its language was written in."""
PRIORS: Final = {
    "windows-1252": 0, "windows-1250": 24, "windows-1254": 24, "windows-1257": 28, "windows-1258": 44,
    "iso-8859-2": 28, "iso-8859-15": 32, "windows-1251": 40, "windows-1253": 40, "windows-1255": 40,
    "windows-1256": 40, "windows-874": 40, "iso-8859-7": 46, "koi8-r": 46, "koi8-u": 48, "iso-8859-5": 52,
    "iso-8859-6": 52, "iso-8859-8-i": 52, "iso-8859-3": 48, "iso-8859-4": 44, "iso-8859-10": 60, "iso-8859-13": 44,
    "iso-8859-14": 56, "iso-8859-16": 44, "ibm866": 64, "macintosh": 64, "x-mac-cyrillic": 72,
    "gb18030": 40, "big5": 40, "shift_jis": 40, "euc-jp": 44, "euc-kr": 40,
}  # fmt: skip
"""Quarters of a bit that an encoding costs before anything is read: how seldom it is on the web."""
WIDE: Final = {
    "gb18030": ("cmn_hans", "gb2312", range(0xB0A1, 0xD800)),
    "big5": ("cmn_hant", "big5", range(0xA440, 0xC680)),
    "shift_jis": ("jpn", "euc_jp", range(0xB0A1, 0xD000)),
    "euc-jp": ("jpn", "euc_jp", range(0xB0A1, 0xD000)),
    "euc-kr": ("kor", "euc_kr", range(0xB0A1, 0xC900)),
}
"""Encoding → text, standard, and where its frequent characters stand in it."""
TRAINED: Final = 3, 5
KINDS: Final = {NO_BREAK: 6.0, TYPOGRAPHIC: 9.0, APOSTROPHE: 8.0, FOREIGN: 15.0, SYMBOL: 15.0, BAD: 24.0}
"""Bits of a character of these kinds, whatever stands before it."""
CONTEXTS: Final = (
    (0, TYPOGRAPHIC, 7.0), (NO_BREAK, TYPOGRAPHIC, 5.0), (TYPOGRAPHIC, TYPOGRAPHIC, 5.0), (TYPOGRAPHIC, 0, 1.0),
    (APOSTROPHE, 0, 2.0), (0, APOSTROPHE, 9.0),
)  # fmt: skip
"""Bits of a symbol after another."""
WEIGHT: Final = 4.0
"""How many pairs seen the chance of a letter anywhere counts for."""
CAPITALS: Final = 30
"""Small letters for each capital, at least."""


def texts() -> dict[str, str]:
    """Return code → text."""
    table = pq.read_table(TEXTS)
    return {row["code"]: unicodedata.normalize("NFC", row["text"]) for row in table.to_pylist()}


def first_part(text: str) -> str:
    """Return what statistics are made of; the rest is for measuring."""
    return text[: len(text) * TRAINED[0] // TRAINED[1]]


def for_windows_1258(text: str) -> str:
    """Return Vietnamese with its tones as combining characters, as windows-1258 has it."""
    tones = "\u0300\u0301\u0303\u0309\u0323"
    result = []
    for character in text:
        parts = unicodedata.normalize("NFD", character)
        if character in decode_as("windows-1258", bytes(range(256))):
            result.append(character)
        elif kept := [mark for mark in parts if mark in tones]:
            result.append(unicodedata.normalize("NFC", "".join(part for part in parts if part not in tones)))
            result += kept
        else:
            result.append(character)
    return "".join(result)


def alphabet_of(text: str) -> str:
    """Return the letters beyond ASCII, and their other cases, that are in `text` more than once."""
    counts = Counter(c for c in text if c >= "\x80" and unicodedata.category(c)[0] in "LM" and c not in "ªº")
    found = {letter for letter, count in counts.items() if count > 1}
    return "".join(sorted({other for c in found for other in (c, c.lower(), c.upper()) if len(other) == 1}))


def costs_of(text: str, alphabet: str, size: int) -> npt.NDArray[np.uint8]:
    """Return the costs of a symbol after another, in quarters of a bit."""
    symbols = np.array([symbol_of(character, alphabet) for character in text], np.int64)
    used = LETTERS + len(alphabet)
    single = np.bincount(symbols, minlength=used).astype(np.float64) + 0.2
    pairs = np.zeros((used, used))
    np.add.at(pairs, (symbols[:-1], symbols[1:]), 1)
    _add_capitals(single, pairs, alphabet)
    single /= single.sum()
    for kind, bits in KINDS.items():
        single[kind] = 2.0**-bits
    pairs[:, list(KINDS)] = 0
    pairs[list(KINDS)] = 0
    bits = -np.log2((pairs + WEIGHT * single) / (pairs.sum(axis=1, keepdims=True) + WEIGHT))
    bits[:, list(KINDS)] = [list(KINDS.values())] * used
    for first, second, cost in CONTEXTS:
        bits[first, second] = cost
    letters = [*range(1, 27), *range(LETTERS, used)]
    bits[TYPOGRAPHIC, letters] += 3
    bits[APOSTROPHE, letters] += 1
    if not any(letter < "\u0250" for letter in alphabet):  # words of two scripts
        bits[1:27, LETTERS:] += 8
        bits[LETTERS:, 1:27] += 8
    table = np.full((size, size), 255, np.uint8)
    table[:used, :used] = np.minimum(np.rint(bits * 4), 255)
    return table


def _add_capitals(single: npt.NDArray[np.float64], pairs: npt.NDArray[np.float64], alphabet: str) -> None:
    """Count capitals as often as texts of names have them; a declaration of rights has few."""
    for place, letter in enumerate(alphabet, LETTERS):
        lower = alphabet.find(letter.lower())
        if lower >= 0 and letter != letter.lower():
            single[place] += single[LETTERS + lower] / CAPITALS
            pairs[0, place] += pairs[0, LETTERS + lower] / CAPITALS * 3
            pairs[place] += pairs[LETTERS + lower] / CAPITALS


def wide_costs(encoding: str, text: str) -> npt.NDArray[np.uint8]:
    """Return the cost of each code point of the basic plane in a language of many characters."""
    _, standard, frequent = WIDE[encoding]
    table = np.full(1 << 16, 88, np.uint8)
    counts = Counter(character for character in text if character >= "\x80")
    total = sum(counts.values())
    for point in range(0x80, 1 << 16):
        if 0xD800 <= point < 0xE000:
            continue
        try:
            place = int.from_bytes(chr(point).encode(standard), "big")
        except UnicodeEncodeError:
            continue
        table[point] = 52 if place in frequent else 68
        if 0x3000 <= point < 0x3020 or 0xFF00 <= point < 0xFF60:
            table[point] = 36
        elif 0x3040 <= point < 0x3100:
            table[point] = 36 if encoding in ("shift_jis", "euc-jp") else 60
    table[0xFF61:0xFFA0] = 60
    for character, count in counts.items():
        if ord(character) < 1 << 16:
            table[ord(character)] = min(table[ord(character)], round(-4 * np.log2(count / total)))
    table[0xFFFD] = 120
    table[0xE000:0xF900] = 100
    table[0x80:0xA0] = 120
    return table


def main() -> None:
    """Write the file."""
    declared, names = texts(), [name for name, encodings in LANGUAGES.items() if encodings]
    known = {name: first_part(declared[name]) for name in names}
    known["vie"] = for_windows_1258(known["vie"])
    alphabets = [alphabet_of(known[name]) for name in names]
    size = LETTERS + max(map(len, alphabets))
    rows = [(encoding, row) for row, name in enumerate(names) for encoding in LANGUAGES[name].split()]
    costs = np.stack([costs_of(known[name], alphabet, size) for name, alphabet in zip(names, alphabets, strict=True)])
    content: dict[str, Any] = {
        "alphabets": np.array(alphabets), "costs": costs,
        "encodings": np.array([encoding for encoding, _ in rows]),
        "languages": np.array([row for _, row in rows], np.uint8),
        "priors": np.array([PRIORS[encoding] for encoding, _ in rows], np.uint8),
        "wide_names": np.array(list(WIDE)), "wide_priors": np.array([PRIORS[name] for name in WIDE], np.uint8),
        "wide": np.stack([wide_costs(name, first_part(declared[code])) for name, (code, _, _) in WIDE.items()]),
    }  # fmt: skip
    with TARGET.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **content)
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes, {len(names)} languages, {size} symbols")


if __name__ == "__main__":
    main()
