from __future__ import annotations

from benchmarks.filter_parity import CHAINS, compare, datatrove_filters, edge_cases, explain, lines_of_report, restated
from benchmarks.plain_filters import PLAIN, READINGS

TEXTS = edge_cases(60)


def test_parity_every_disagreement_with_datatrove_on_edge_cases_is_explained() -> None:
    parity = compare(TEXTS, restated())
    assert parity.unexplained == []
    assert parity.different == sum(counts.total() for counts in parity.explained.values()) > 10
    assert any("right" in line or "agree" in line for line in lines_of_report(parity))


def test_parity_datatrove_itself_gives_the_verdicts_of_its_restatement() -> None:
    plain = restated()
    with datatrove_filters() as theirs:
        for name in CHAINS:
            for text in TEXTS:
                assert isinstance(theirs[name](text), str) == isinstance(plain[name](text), str), (name, text)


def test_parity_an_explanation_has_the_fewest_readings() -> None:
    text = "A fact of note. [3]\n" * 6
    assert explain("C4", text, PLAIN["C4"](text, frozenset())) == ("space before a citation",)


def test_parity_readings_say_who_is_right() -> None:
    for readings in READINGS.values():
        assert {reading.right for reading in readings.values()} <= {"ours", "theirs", "open"}
