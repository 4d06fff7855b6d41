from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from transforms import unicode_tables as tables


def test_tables_packaged_file_has_pinned_digest() -> None:
    assert tables.VERSION == "18.0.0"
    assert tables.digest() == "ce53681484af145ef87731da107d44f2"


def test_tables_shape_is_one_entry_per_code_point_read_only() -> None:
    for table in (tables.CLASS, tables.WORD_BREAK, tables.ALPHABETIC, tables.WHITESPACE, tables.LOWER):
        assert len(table) == tables.CODE_POINTS
        assert not table.flags.writeable


@pytest.mark.parametrize(
    ("characters", "expected"),
    [
        ("aÄжابҐアガ가ー", tables.LETTER),
        ("\u0301\u093f\u0e31\u20dd", tables.MARK),
        ("0٣²½Ⅷ①", tables.NUMBER),
        ("中々〇ひ", tables.IDEOGRAPH),
        ("ไກကក", tables.COMPLEX),
        ("_‿", tables.CONNECTOR),
        ("!«。'", tables.PUNCTUATION),
        ("$+€😀", tables.SYMBOL),
        (" \t\x0b\x0c\x85\u00a0\u3000", tables.SPACE),
        ("\n\r\u2028\u2029", tables.LINE_BREAK),
        ("\x00\x1b\x7f\x9f", tables.CONTROL),
        ("\u200d\ufeff\u00ad", tables.FORMAT),
        ("\ue000\ud800\u0378", tables.OTHER),
    ],
)
def test_class_known_characters_have_their_class(characters: str, expected: int) -> None:
    assert {tables.CLASS_NAMES[tables.CLASS[ord(character)]] for character in characters} == {
        tables.CLASS_NAMES[expected]
    }


def test_alphabetic_is_letters_only() -> None:
    assert all(tables.ALPHABETIC[ord(character)] for character in "aÄ中ไー")
    assert not any(tables.ALPHABETIC[ord(character)] for character in "1_\u0301 Ⅷ")


def test_whitespace_is_white_space_property() -> None:
    assert np.flatnonzero(tables.WHITESPACE).tolist() == [
        *range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
    ]  # fmt: skip


def test_lower_special_cases_are_simple_mappings() -> None:
    for upper, lower in ("Aa", "Ää", "Σσ", "ẞß", "İi", "Ᏸᏸ", "Kk", "ǅǆ", "ßß", "ςς", "ſſ"):
        assert chr(tables.LOWER[ord(upper)]) == lower


def test_lower_old_characters_agree_with_this_python() -> None:
    """Characters of Unicode 14 (Python 3.11) kept their mappings since: a sanity check of the generator."""
    for code_point in range(tables.CODE_POINTS):
        lowered = chr(code_point).lower()
        if unicodedata.category(chr(code_point)) != "Cn" and len(lowered) == 1:
            assert tables.LOWER[code_point] == ord(lowered)


def test_lower_twice_is_lower_once() -> None:
    assert np.array_equal(tables.LOWER[tables.LOWER], tables.LOWER)
