from __future__ import annotations

import re

import pytest

from transforms.language_tags import SHORTEST, WIKIPEDIA, language_of, range_of


@pytest.mark.parametrize(
    ("label", "language"),
    [
        ("en", "en"),
        ("als", "gsw"),
        ("als_Latn", "sq"),
        ("bh", "bho"),
        ("eng_Latn", "en"),
        ("cmn_Hant", "zh"),
        ("zho-Hans", "zh"),
        ("arb_Arab", "ar"),
        ("ceb", "ceb"),
        ("gsw_Latn", "gsw"),
        ("english", "english"),
        ("EN", "EN"),
        ("", ""),
    ],
)
def test_label_becomes_the_shortest_subtag(label: str, language: str) -> None:
    assert language_of(label) == language


@pytest.mark.parametrize(
    ("tag", "form"),
    [
        ("de", "de"),
        ("deu", "de"),
        ("zh-Hant", "zh-Hant"),
        ("zho_Hant", "zh-Hant"),
        ("als", "sq"),
        ("Deutsch", "Deutsch"),
    ],
)
def test_range_has_one_form(tag: str, form: str) -> None:
    assert range_of(tag) == form


def test_tables_hold_codes_only() -> None:
    assert len(set(SHORTEST.values())) == 184
    assert all(re.fullmatch("[a-z]{3}", code) and re.fullmatch("[a-z]{2}", short) for code, short in SHORTEST.items())
    assert not set(WIKIPEDIA.values()) & set(SHORTEST)
