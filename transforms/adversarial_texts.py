"""Texts on which two tokenizers with the same vocabulary differ if they differ: what a fast one is tried on.

Made here from a few pieces and a digest, so they are the same everywhere. Cost of making them: some milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from blake3 import blake3

from transforms.token_conversion import byte_letters
from transforms.unicode_tables import CLASS, CODE_POINTS, OTHER

LARGE_BLOCKS: Final = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x12000, 0x1254F), (0x13000, 0x1467F), (0x17000, 0x187F7),
    (0x18800, 0x18CD5), (0x20000, 0x2A6DF), (0x2A700, 0x2B739), (0x2B740, 0x2B81D), (0x2B820, 0x2CEA1),
    (0x2CEB0, 0x2EBE0), (0x2EBF0, 0x2EE5D), (0x30000, 0x3134A), (0x31350, 0x323AF), (0xE0100, 0xE01EF),
)  # fmt: skip
"""Han, Hangul, cuneiform, hieroglyphs, Tangut, selectors: thousands of one kind in one block."""

STRIDE: Final = 61
"""Of a large block, one code point of so many is tried."""


def adversarial_texts(added: Sequence[str]) -> list[str]:
    """Return texts on which tokenizers differ: runs, borders of words, mixtures, and `added` tokens whole and cut."""
    return [*_runs(), *_mixtures(), *_added(added)]


def points_to_try() -> list[int]:
    """Return code points to try one by one: all that have a class, but of the large blocks of one kind only some."""
    known = np.flatnonzero(CLASS != OTHER)
    large = np.zeros(len(known), np.bool_)
    for first, last in LARGE_BLOCKS:
        large |= (known >= first) & (known <= last) & (known % STRIDE != 0)
    rest = range(0, CODE_POINTS, 4099)  # unassigned, private
    return sorted({*known[~large].tolist(), *(point for point in rest if not 0xD800 <= point < 0xE000)})


NEIGHBOURS: Final = "aA1. "
"""Letters, digit, point and space: what a character is or is not joined with into a word."""


def around(point: int) -> str:
    """Return a code point between each of `NEIGHBOURS`, twice."""
    letter = chr(point)
    return "".join(f"{neighbour}{letter}{neighbour}\n" for neighbour in NEIGHBOURS)


def probe(content: str) -> str | None:
    """Return the tokenizer.json `content` with another model, whose ids show every border between words.

    It joins each of `NEIGHBOURS` with the first byte of a character behind it and with the last of one before it, and
    nothing else: the pair is one id if and only if the file's patterns leave it in one word. So characters that two
    libraries class otherwise are found whether or not the vocabulary has merges that show it. None where the file does
    not work on bytes.
    """
    value = json.loads(content)
    if '"ByteLevel"' not in json.dumps(value["pre_tokenizer"]) or value["model"].get("byte_fallback"):
        return None
    letters = byte_letters()
    merges = [[letters[ord(one)], letters[byte]] for one in NEIGHBOURS for byte in range(0xC2, 0xF5)]
    merges += [[letters[byte], letters[ord(one)]] for one in NEIGHBOURS for byte in range(0x80, 0xC0)]
    tokens = [*letters, *(left + right for left, right in merges)]
    model = {**value["model"], "vocab": {token: index for index, token in enumerate(tokens)}, "merges": merges}
    return json.dumps({**value, "added_tokens": [], "model": {**model, "unk_token": None}})


def block_of(point: int) -> range:
    """Return the large block that a code point lies in, or itself alone."""
    return next(
        (range(first, last + 1) for first, last in LARGE_BLOCKS if first <= point <= last), range(point, point + 1)
    )


def _runs() -> Iterator[str]:
    for unit in (
        " ",
        "\n",
        "\r\n",
        "\t",
        "\u3000",
        "a",
        "A",
        "7",
        "-",
        "=-",
        "é",
        "e\u0301",
        "漢",
        "ا",
        "🏽",
        "\u200b",
        "\x00",
    ):
        for count in (2, 3, 7, 64, 1000):
            yield unit * count
            yield f"x{unit * count}x {unit * count} 1"


_PIECES: Final = (
    " ", "  ", "\n", "\n\n", "\r\n", "\r", "\t", "\xa0", "\u2028", "\u3000", "'", "'s", "'S", "'ſ", "’s", "'ll",
    "'LL", "'re", "'Ve", "'m", "'d", "'t", "don't", "I'M", "K", "a", "B", "é", "ß", "İ", "ı", "Σ", "ς", "1", "12",
    "1234", "٣", "½", "Ⅷ", "²", "e\u0301", "\u0301", "ी", "हिन्दी", "น้ำ", "漢", "字かな", "한국어", "العربيّة", "עברית",
    "👩\u200d🚀", "🏽", "🇳🇱", "\u200b", "\ufeff", "�", "\U0010fffd", "\ue000", "\x00", "\x7f", "\x85", ".", "...",
    ",", "!", "?!", "-", "--", "_", "/", "\\", "//", "@", "#", "<", "<|", "|>", "</s>", "▁", "Ġ", "{", "}", "()",
    "[[", "=", "==", "$", "€", "°C", "0x1F", "1e-7", "word", "Word", "WORD", "camelCase", "snake_case",
    "https://example.org/?q=%20", "\\begin{equation}", "\t\treturn", "    ",
)  # fmt: skip
"""Ends and beginnings of words as patterns see them."""


def _mixtures() -> Iterator[str]:
    """Yield texts of pieces that a digest chooses."""
    for number in range(300):
        chosen = blake3(f"adversarial {number}".encode()).digest(2 * (3 + number % 40))
        yield "".join(
            _PIECES[int.from_bytes(chosen[i : i + 2], "big") % len(_PIECES)] for i in range(0, len(chosen), 2)
        )


def _added(added: Sequence[str]) -> Iterator[str]:
    """Yield added tokens, whole, doubled, cut, and within words."""
    for text in added[:: max(1, len(added) // 64)]:
        yield f"{text}a {text} {text}{text}\n{text[:-1]} {text[1:]} a{text}1 {text[::-1]}  {text}\t{text}."
