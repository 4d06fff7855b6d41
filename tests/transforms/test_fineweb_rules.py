from __future__ import annotations

import pytest

from benchmarks.filter_parity import edge_cases, ours
from benchmarks.plain_filters import plain_fineweb
from tests.transforms.documents import batch_of, reasons
from transforms.fineweb_rules import FineWebQuality

LINE = "The boats came in with the tide, and the gates were opened"


def dropped(text: str, rules: FineWebQuality | None = None) -> list[str]:
    return reasons((rules or FineWebQuality()).apply(batch_of([text])))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{LINE}.", []),
        (f"{LINE}.  \n \n", []),
        ("", []),
        (f"{LINE}। ", []),
        (LINE, ["too few lines end in punctuation"]),
        ("\n".join(f"{LINE} {number}" for number in range(8)) + "\nYes.", ["too few lines end in punctuation"]),
        ("\n".join(f"{LINE} {number}" for number in range(7)) + "\nYes.", []),
        ("Home.\nAbout.\n" + LINE + ".", []),
        ("Home.\nAbout.\nShop.\n" + LINE + ".", ["too many short lines"]),
        (f"{LINE}.\n" * 2, ["too many characters in duplicate lines"]),
        ("\n\n\n".join(f"{LINE} {number}." for number in range(4)) + "\n" * 20, ["too many line breaks"]),
        ("!!!\n!!!", ["too many short lines"]),
    ],
)
def test_fineweb_each_rule_drops_under_its_reason(text: str, expected: list[str]) -> None:
    assert dropped(text) == expected


def test_fineweb_duplicate_lines_of_the_code_and_of_the_paper_differ() -> None:
    text = "\n".join(f"{LINE} {number}." for number in range(40)) + f"\n{LINE} 1."
    assert dropped(text) == []
    assert dropped(text, FineWebQuality(max_characters_in_duplicate_lines=0.01)) == [
        "too many characters in duplicate lines"
    ]


def test_fineweb_rules_set_to_none_are_off() -> None:
    off = FineWebQuality(None, None, max_characters_in_duplicate_lines=None, max_line_breaks_per_word=None)
    assert dropped("a\na\n\n\n", off) == []


def test_fineweb_edge_cases_equal_the_rules_in_plain_python() -> None:
    texts = edge_cases(400)
    found = [bool(verdict) for verdict in ours("FineWebQuality", texts)]
    assert found == [bool(plain_fineweb(text, frozenset())) for text in texts]
