from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.documents import batch_of, kept_texts
from transforms.normalise import NormalizeText


def normalised(text: str, transform: NormalizeText | None = None) -> tuple[str, dict[str, tuple[int, int]]]:
    """The text and, per reason, code points cut and inserted."""
    outcome = (transform or NormalizeText()).apply(batch_of([text]))
    edits = {row["reason"]: (row["cut"], row["inserted"]) for row in outcome.edits.to_pylist()}
    return kept_texts(outcome)[0], edits


@pytest.mark.parametrize(
    ("text", "expected", "edits"),
    [
        ("", "", {}),
        ("a b\tc\n\n\nd", "a b\tc\n\n\nd", {}),
        ("a\r\nb\rc\u2028d\u0085e\x0cf", "a\nb\nc\nd\ne\nf", {"line breaks": (5, 4)}),
        ("a\x00b\x1b[0m\x7f\x9f", "ab[0m", {"control characters": (4, 0)}),
        ("\ufeffa\ufeffb", "ab", {"byte order marks": (2, 0)}),
        ("a \u200b\u200d\u200c\u00ad\ufffdb", "a \u200b\u200d\u200c\u00ad\ufffdb", {}),
        ("a \t\u00a0\nb\u3000", "a\nb", {"trailing spaces": (4, 0)}),
        ("a" + " " * 300 + "b", "a" + " " * 256 + "b", {"runs of spaces": (44, 0)}),
        (" " * 300, "", {"trailing spaces": (300, 0)}),
        ("a\n\n\n\n\nb", "a\n\n\nb", {"blank lines": (2, 0)}),
        ("a\n \n\t\n\r\n\n", "a\n\n\n", {"trailing spaces": (2, 0), "line breaks": (1, 0), "blank lines": (2, 0)}),
        ("\n\n\n\na", "\n\na", {"blank lines": (2, 0)}),
        ("a \x00 \nb", "a\nb", {"control characters": (1, 0), "trailing spaces": (2, 0)}),
        ("e\u0301t\u00e9-\u212b", "\u00e9t\u00e9-\u00c5", {"composition": (4, 3)}),
        ("e\x00\u0301 \u1112\u1161\u11ab", "\u00e9 \ud55c", {"control characters": (1, 0), "composition": (5, 2)}),
        ("\u0344a\u0301\u0323", "\u0308\u0301\u1ea1\u0301", {"composition": (4, 4)}),
        ("\r\r\r\ra", "\n\na", {"line breaks": (4, 4), "blank lines": (2, 0)}),
    ],
)
def test_normalise_each_rule_edits_under_its_reason(
    text: str, expected: str, edits: dict[str, tuple[int, int]]
) -> None:
    assert normalised(text) == (expected, edits)


def test_normalise_rules_with_none_are_off() -> None:
    off = NormalizeText(max_trailing_spaces=None, max_spaces=None, max_blank_lines=None, form=None)
    text = "a\u0301" + " " * 1000 + "\n" * 50 + "b  "
    assert normalised(text, off) == (text, {})


def test_normalise_trailing_spaces_beyond_their_cap_are_cut() -> None:
    markdown = NormalizeText(max_trailing_spaces=2)
    assert normalised("a   \n b    c ", markdown) == ("a  \n b    c ", {"trailing spaces": (1, 0)})
    assert normalised("  \n \n   \n\n", NormalizeText(max_trailing_spaces=2, max_blank_lines=1)) == (
        "  \n",
        {"trailing spaces": (1, 0), "blank lines": (6, 0)},
    )


@pytest.mark.parametrize(
    "fields", [{"max_spaces": 0}, {"max_blank_lines": -1}, {"max_trailing_spaces": -1}, {"form": "NFKC"}]
)
def test_normalise_impossible_settings_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least|NFC"):
        NormalizeText(**fields)


def plainly(text: str, transform: NormalizeText) -> str:
    """The rules one after the other, by Python's regular expressions on characters that are written out."""
    text = re.sub("\r\n|[\r\x0b\x0c\x85\u2028\u2029]", "\n", text)
    text = re.sub("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]", "", text)
    spaces = "[ \t\u00a0\u3000]"

    def cap(limit: int | None, pattern: str, text: str) -> str:
        return text if limit is None else re.sub(pattern, lambda match: match[0][:limit], text)

    text = cap(transform.max_trailing_spaces, f"{spaces}+(?=\n|\\Z)", text)
    text = cap(transform.max_spaces, f"{spaces}+", text)
    lines, kept, blank = text.split("\n"), [], 0
    for line in lines[:-1]:
        blank = 0 if line.strip(" \t\u00a0\u3000") else blank + 1
        if transform.max_blank_lines is None or blank <= transform.max_blank_lines:
            kept.append(line)
    text = "\n".join([*kept, lines[-1]])
    return text if transform.form is None else unicodedata.normalize("NFC", text)


caps = st.one_of(st.none(), st.integers(0, 3))
transforms = st.builds(
    NormalizeText,
    max_trailing_spaces=caps,
    max_spaces=st.one_of(st.none(), st.integers(1, 3)),
    max_blank_lines=caps,
    form=st.sampled_from(["NFC", None]),
)
texts = st.text(st.sampled_from("ab  \n\n\r\t\x00\ufeff\u00a0\u3000\u2028\x0c\x85ä中😀\u200d\u0301\u0323"), max_size=30)


@given(texts, transforms)
@settings(max_examples=500)
def test_normalise_any_text_equals_the_rules_one_by_one(text: str, transform: NormalizeText) -> None:
    result, edits = normalised(text, transform)
    assert result == plainly(text, transform)
    cut, inserted = (sum(counts[side] for counts in edits.values()) for side in (0, 1))
    assert len(text) + inserted == len(result) + cut
    assert normalised(result, transform) == (result, {})


@given(st.lists(texts, max_size=6), st.integers(0, 6))
@settings(max_examples=100)
def test_normalise_any_slice_gives_the_same_rows(texts: list[str], cut: int) -> None:
    batch = batch_of(texts)
    whole = NormalizeText().apply(batch)
    parts = [NormalizeText().apply(batch.slice(0, cut)), NormalizeText().apply(batch.slice(cut))]
    for table in ("kept", "edits"):
        assert getattr(whole, table).to_pylist() == [row for part in parts for row in getattr(part, table).to_pylist()]


def test_normalise_unchanged_batch_is_the_same_batch() -> None:
    batch = batch_of(["a", "b\n"])
    assert NormalizeText().apply(batch).kept is batch


def test_normalise_huge_runs_are_capped() -> None:
    text, edits = normalised("a" + " " * 5_000_000 + "b" + "\n" * 1_000_000 + "c")
    assert len(text) == 1 + 256 + 1 + 3 + 1
    assert edits == {"runs of spaces": (4_999_744, 0), "blank lines": (999_997, 0)}
