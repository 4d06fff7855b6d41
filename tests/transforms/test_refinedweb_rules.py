from __future__ import annotations

import random
import re

import pytest

from tests.transforms.documents import batch_of, kept_texts, reasons
from transforms.refinedweb_rules import COUNTED, RefinedWebLines

PROSE = "The boats came in with the tide, and the gates were opened to all who would pass.\n" * 9
ALL = RefinedWebLines(max_removed_words=None)


def left(line: str, rules: RefinedWebLines = ALL) -> str:
    (text,) = kept_texts(rules.apply(batch_of([PROSE + line + "\n" + PROSE])))
    assert text.startswith(PROSE) and text.endswith(PROSE)
    return text[len(PROSE) : len(text) - len(PROSE)]


@pytest.mark.parametrize(
    "line",
    ["ABOUT US NOW", "A Bc DE", "1234", "12 34\u00a056", "٣٤", "3 likes", "1.2K Views", "1,024 followers!", "Home",
     "--------", "Sign-in", "SIGN-IN ", "Read more...", "Read more…", "Items in Cart"],
)  # fmt: skip
def test_refinedweb_lines_of_no_prose_go(line: str) -> None:
    assert left(line) == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ""),
        ("About us here", "About us here"),
        ("Aa Bb", "Aa Bb"),
        ("12 men", "12 men"),
        ("12 likes of it", "12 likes of it"),
        ("many likes", "many likes"),
        ("3rd comments", "3rd comments"),
        ("Sign-in to go on", "to go on"),
        ("  Sign-in to go on", "  to go on"),
        ("sign-ing is a craft", "sign-ing is a craft"),
        ("We sign-in here", "We sign-in here"),
        ("The tides of May. Read more...", "The tides of May."),
        ("You have 3 items in cart now", "You have 3 now"),
        ("a b c d e f g h Read more...", "a b c d e f g h"),
        ("a b c d e f g h i Read more...", "a b c d e f g h i Read more..."),
    ],
)
def test_refinedweb_other_lines_stay_without_their_patterns(line: str, expected: str) -> None:
    assert left(line) == expected + "\n"


def test_refinedweb_text_that_loses_too_many_words_is_dropped() -> None:
    prose = "boats came in with tides and all " * 8 + "now\n"  # 57 words
    rules = RefinedWebLines()
    assert kept_texts(rules.apply(batch_of([prose + "Home\n3 likes"]))) == [prose]  # 3 of 60
    outcome = rules.apply(batch_of([prose + "Home\n3 likes\n1 share\n2 shares"]))
    assert reasons(outcome) == ["too many words cut"]
    row = outcome.dropped.to_pylist()[0]
    assert (row["numerator"], row["denominator"], row["threshold"]) == (5, 64, "≤ 0.05")


def test_refinedweb_impossible_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one character"):
        RefinedWebLines(prefixes=("",))
    with pytest.raises(ValueError, match="nine digits"):
        RefinedWebLines(max_upper_case=1e-12)


def plain_reason(line: str) -> str | None:
    """The rules on whole lines, for ASCII."""
    words = re.findall(r"[A-Za-z0-9]+(?:[.,'][A-Za-z0-9]+)*", line)
    bare = re.sub(r"\s", "", line)
    if sum(character.isupper() for character in line) > len(line) / 2:
        return "upper-case lines"
    if bare.isdigit():
        return "lines of numbers"
    if len(words) == 2 and words[1].lower() in COUNTED and re.fullmatch(r"\d[\d.,]*[kmbKMB]?", words[0]):
        return "counters"
    return "lines of one word" if len(words) < 2 else None


def test_refinedweb_random_lines_equal_the_rules_in_plain_python() -> None:
    draw = random.Random(5)
    pieces = ["A", "Bc", "de", "12", "3", "7k", "likes", "Views", " ", "  ", "-", "!", "1,5", "XYZ"]
    lines = [" ".join(draw.choices(pieces, k=draw.randrange(1, 5))).strip() or "x y" for _ in range(300)]
    rules = RefinedWebLines(prefixes=(), suffixes=(), anywhere=(), max_removed_words=None)
    outcome = rules.apply(batch_of([f"stays as it is\n{line}" for line in lines]))
    found = dict.fromkeys(outcome.kept.column("id").to_pylist())
    found.update((row["id"], row["reason"]) for row in outcome.edits.to_pylist())
    assert list(found.values()) == [plain_reason(line) for line in lines]
