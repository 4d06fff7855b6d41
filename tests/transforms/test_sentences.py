from __future__ import annotations

import pyarrow as pa
import pytest

from transforms import marks
from transforms.findings import Findings
from transforms.sentences import count_sentences


def sentences(text: str) -> list[int]:
    return count_sentences(Findings(pa.array([text], pa.large_string()))).tolist()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", 0),
        ("... !!!", 0),
        ("No mark at all", 1),
        ("One. Two! Three?", 3),
        ("“One.” (Two!) Three?!  Four", 4),
        ("It is e.g. this, etc. and that.", 1),
        ("J. S. Bach wrote. Much of it.", 2),
        ("Version 1.2 of it. It costs 3.50 now.", 2),
        ("Well... he went. Well... He went.", 3),
        ("One.Two.Three", 1),
        ("It ended.[1] And began.", 1),
        ("一句。两句！三句？「四句。」五", 5),
        ("पहला। दूसरा।", 2),
        ("هل؟ نعم.", 2),
        ("Mr. Smith", 2),
    ],
)
def test_sentences_of_a_line_are_counted(line: str, expected: int) -> None:
    assert sum(sentences(line)) == expected


def test_sentences_belong_to_their_lines() -> None:
    assert sentences("One. Two.\n\nThree\r\nFour. Five. Six") == [2, 0, 1, 3]


def test_sentence_ends_are_those_of_unicode_and_three_of_khmer() -> None:
    regex = pytest.importorskip("regex")
    others = [mark for mark in marks.SENTENCE_ENDS if not regex.match(r"\p{Sentence_Terminal}", mark)]
    assert "".join(others) == "\u17d6\u17d9\u17da"
    assert len(set(marks.SENTENCE_ENDS)) == 175


def test_cases_are_those_of_letters() -> None:
    assert all(marks.UPPER_CASE[ord(c)] and not marks.LOWER_CASE[ord(c)] for c in "AZÄЖΩ")
    assert all(marks.LOWER_CASE[ord(c)] and not marks.UPPER_CASE[ord(c)] for c in "azäжωß")
    assert not any(marks.LOWER_CASE[ord(c)] or marks.UPPER_CASE[ord(c)] for c in "1.中あⓐ")
