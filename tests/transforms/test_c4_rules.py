from __future__ import annotations

import pytest

from benchmarks.filter_parity import edge_cases, ours, same
from benchmarks.plain_filters import plain_c4, plain_mc4
from tests.transforms.documents import batch_of, kept_texts, reasons
from transforms.c4_rules import C4Documents, C4Lines, MC4Paragraphs
from transforms.marks import SENTENCE_ENDS
from transforms.outcome import Outcome

GOOD = "The boats came in with the tide.\n"


def cut(line: str, rules: C4Lines | None = None) -> dict[str, int]:
    """What is cut of a text that has `line` between two that stay, by reason."""
    outcome = (rules or C4Lines()).apply(batch_of([GOOD + line + "\n" + GOOD]))
    return {row["reason"]: row["cut"] for row in outcome.edits.to_pylist()}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "blank lines"),
        (" \t ", "blank lines"),
        ("a " * 5 + "x" * 1001 + ".", "lines with a long word"),
        ("And so the harbour lay quiet", "lines without an end mark"),
        ("And so the harbour lay quiet...", "lines without an end mark"),
        ("The gates were shut.", "lines of few words"),
        ("— — — — — — .", "lines of few words"),
        ("Please enable JavaScript to see the tides.", "lines on scripts"),
        ("This site Uses  Cookies, as all of them do.", "policy lines"),
    ],
)
def test_c4_lines_each_rule_cuts_the_line_with_its_break(line: str, reason: str) -> None:
    assert cut(line) == {reason: len(line) + 1}


@pytest.mark.parametrize(
    "line",
    [
        "The keeper of it asked us why?",
        'The keeper said that it was "late"',
        "The keeper said that it was “late”",
        "  The keeper said that it was late.  ",
        "Those who write javascripts know of tides.",
        "He reuses cookies of the keeper's wife.",
        "All that is in the terms. Of use it was not.",
    ],
)
def test_c4_lines_prose_stays_as_it_is(line: str) -> None:
    assert cut(line) == {}


def test_c4_lines_citations_go_and_do_not_hide_the_end_mark() -> None:
    text = "The tide[1] was low that year[edit]and lower.[citation needed] [23]\n"
    outcome = C4Lines().apply(batch_of([text + "Here [2a] and [] too it was [Edit] as low."]))
    assert kept_texts(outcome) == ["The tide was low that year and lower. \nHere [2a] and  too it was [Edit] as low."]
    edit = outcome.edits.to_pylist()[0]
    assert (edit["reason"], edit["cut"], edit["inserted"]) == ("citations", 3 + 6 + 17 + 4 + 2, 1)


def test_c4_lines_words_of_citations_do_not_count() -> None:
    assert cut("A b c d [12].") == {"lines of few words": 14}
    assert cut("A b c d e [12].") == {"citations": 4}


def test_c4_lines_text_without_a_line_left_is_dropped() -> None:
    outcome = C4Lines().apply(batch_of(["menu\nhome\n", GOOD, ""]))
    assert reasons(outcome) == ["no line left", "no line left"]
    assert kept_texts(outcome) == [GOOD]


def test_c4_lines_rules_set_to_none_are_off() -> None:
    off = C4Lines(end_marks=None, min_words=None, max_word_length=None, scripts=(), policies=(), citations=None)
    text = "menu\njavascript [1] uses cookies\n" + "x" * 2000
    assert kept_texts(off.apply(batch_of([text]))) == [text]


def test_c4_lines_chinese_with_marks_of_all_scripts_stays() -> None:
    text = "港口在冬天很安静。\n门也关着\n"
    assert kept_texts(C4Lines(end_marks=SENTENCE_ENDS).apply(batch_of([text]))) == ["港口在冬天很安静。\n"]


def test_c4_lines_tag_counts_the_lines_and_cuts_nothing() -> None:
    text = GOOD + "\nmenu\nhome\n"
    outcome = C4Lines().tag().apply(batch_of([text]))
    row = outcome.kept.to_pylist()[0]
    assert row["text"] == text
    assert row["c4_lines_lines_without_an_end_mark"] == {"numerator": 2, "denominator": 3}
    assert row["c4_lines_reason"] is None
    assert C4Lines().tag().name == "C4Lines.tag"


def dropped(text: str, rules: C4Documents | None = None) -> list[str]:
    outcome: Outcome = (rules or C4Documents()).apply(batch_of([text]))
    return reasons(outcome)


def test_c4_documents_each_rule_drops_under_its_reason() -> None:
    assert dropped(GOOD * 3) == []
    assert dropped(GOOD * 3 + "f() { return }") == ["curly bracket"]
    assert dropped(GOOD * 3 + "LOREM\u00a0ipsum dolor") == ["placeholder text"]
    assert dropped(GOOD * 2) == ["too few sentences"]
    banned = C4Documents(banned=("tide", "high water"))
    assert dropped(GOOD * 3, banned) == ["banned word"]
    assert dropped("The tides came in. High waters, too. We went.", banned) == []
    assert dropped("The boats came in. High Water, too. We went.", banned) == ["banned word"]


def test_mc4_paragraphs_three_long_lines_are_wanted() -> None:
    long = "x" * 200 + "\n"
    outcome = MC4Paragraphs().apply(batch_of([long * 3, long * 2 + "y" * 199 + " " * 9]))
    assert (len(kept_texts(outcome)), reasons(outcome)) == (1, ["too few long lines"])


def test_c4_impossible_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="one character"):
        C4Lines(end_marks=("...",))
    with pytest.raises(ValueError, match="begins and ends with a word"):
        C4Lines(policies=("terms of use.",))
    with pytest.raises(ValueError, match="begins and ends with a word"):
        C4Documents(banned=("!!",))


def test_c4_edge_cases_equal_the_rules_in_plain_python() -> None:
    texts = edge_cases(400)
    for text, found in zip(texts, ours("C4", texts), strict=True):
        assert same(found, plain_c4(text, frozenset())), text
    assert ours("MC4Paragraphs", texts) == [plain_mc4(text, frozenset()) for text in texts]


def test_c4_lines_hostile_text_takes_linear_time() -> None:
    rules = C4Lines()
    for text in ("[" * 200_000, "[1]" * 70_000 + ".", "a" * 500_000 + ".", "uses " * 60_000 + "."):
        assert reasons(rules.apply(batch_of([text]))) in (["no line left"], [])
