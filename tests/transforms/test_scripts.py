from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms import scripts
from transforms.scripts import CODES, IDEOGRAPH_WEIGHT, NAMES, SCRIPT, find_scripts, script_of
from transforms.segmentation import text_buffers
from transforms.unicode_tables import ALPHABETIC


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The house, 12", "Latn"),
        ("Ку́ћа на брду", "Cyrl"),
        ("Kuća na brdu и још", "Latn"),
        ("我们这里说汉语", "Hans"),
        ("我們這裡說漢語", "Hant"),
        ("中文字", "Hani"),
        ("国國说說", "Hani"),
        ("これは漢字です", "Jpan"),
        ("한국어 漢字", "Kore"),
        ("Καλημέρα", "Grek"),
        ("ภาษาไทย", "Thai"),
        ("a\u0301", "Latn"),
        ("", None),
        ("12 – ☃ 👍", None),
        ("ㄅㄆㄇ", "Hani"),
    ],
)
def test_script_is_that_of_most_letters(text: str, code: str | None) -> None:
    assert script_of(text) == code


def test_tables_are_pinned() -> None:
    assert scripts.digest() == "70877c5b4c7ecba4e101bba1f7050479"
    assert len(SCRIPT) == 0x110000 and NAMES[0] == "" and list(NAMES[3:]) == sorted(NAMES[3:])
    assert not SCRIPT[~ALPHABETIC].any()
    assert not SCRIPT.flags.writeable


def plain(text: str) -> tuple[str | None, int]:
    counts = np.bincount([int(SCRIPT[ord(character)]) for character in text] or [0], minlength=len(NAMES))
    found = {name: int(count) for name, count in zip(NAMES[1:], counts[1:], strict=True) if count}
    east = {name: found.pop(name, 0) for name in ("Hans", "Hant", "Hani", "Hira", "Kana", "Hang", "Bopo")}
    letters, total = sum(found.values()), sum(east.values())
    if not letters + total:
        return None, 0
    best = max(sorted(found), key=lambda name: found[name], default="")
    weight = letters + IDEOGRAPH_WEIGHT * total
    if total <= found.get(best, 0):
        return best, weight
    if 2 * east["Hang"] >= total:
        return "Kore", weight
    kana = east["Hira"] + east["Kana"]
    if 20 * kana >= total - east["Hang"]:
        return "Jpan", weight
    simple, old = east["Hans"], east["Hant"]
    return ("Hans" if simple >= max(2, 4 * old) else "Hant" if old >= max(2, 4 * simple) else "Hani"), weight


@settings(max_examples=150)
@given(st.lists(st.text("aBéяΣ国國说說中あアー한ㄅกअ1. \n", max_size=14) | st.text(max_size=8), max_size=5))
def test_kernel_equals_counting_letter_by_letter(texts: list[str]) -> None:
    data, bounds = text_buffers(pa.array(texts, pa.large_string()))
    found = find_scripts(data, bounds[:-1], bounds[1:])
    assert list(zip(found.names(), found.weight.tolist(), strict=True)) == [plain(text) for text in texts]
    assert all(code is None or code in CODES for code in found.names())


def test_letters_of_ascii_are_latin_and_nothing_else_of_it_is() -> None:
    """Blocks of ASCII are counted by their letters alone."""
    latin = NAMES.index("Latn")
    assert SCRIPT[:128].tolist() == [latin * chr(code).isalpha() for code in range(128)]


def test_scripts_of_long_texts_are_those_of_all_their_letters() -> None:
    texts = ["a1 " * n + "я" * m + "b" * 64 for n in (0, 20, 21, 22, 64) for m in (0, 1, 60, 200)]
    data, bounds = text_buffers(pa.array(texts, pa.large_string()))
    found = find_scripts(data, bounds[:-1], bounds[1:])
    assert list(zip(found.names(), found.weight.tolist(), strict=True)) == list(map(plain, texts))
