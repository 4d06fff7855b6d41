from __future__ import annotations

import pyarrow as pa
import pytest

from transforms.findings import Findings
from transforms.phrases import find_phrases, phrases


def found(text: str, *groups: tuple[str, ...]) -> list[int]:
    return find_phrases(Findings(pa.array([text], pa.large_string())), phrases(*groups)).tolist()


def test_phrases_are_found_in_their_lines_by_group() -> None:
    text = "Use cookies, use them\nthe terms\u00a0of  use\nnothing\ncookies TERMS OF USE use-cookies"
    assert found(text, ("use cookies",), ("terms of use", "nothing at all")) == [1, 2, 0, 3]


@pytest.mark.parametrize(
    "text", ["terms.of use", "terms\nof use", "terms of useful", "of use", "terms of", "term of use"]
)
def test_phrases_parts_and_other_words_are_not_found(text: str) -> None:
    assert not any(found(text, ("terms of use",)))


def test_phrases_with_a_common_first_word_are_told_apart() -> None:
    many = tuple(f"use w{number}" for number in range(300))
    assert found("we use w299\nuse w300\nuse\nw7", many, ("use",)) == [3, 2, 2, 0]


def test_phrases_in_scripts_without_spaces_are_found() -> None:
    assert found("请看隐私政策吧\n隐私的政策", ("隐私政策",)) == [1, 0]


def test_phrases_that_could_never_be_found_are_refused() -> None:
    for bad in ("", "  ", "use!", "-use"):
        with pytest.raises(ValueError, match="begins and ends with a word"):
            phrases((bad,))
    with pytest.raises(ValueError, match="eight groups"):
        phrases(*[("a",)] * 9)
