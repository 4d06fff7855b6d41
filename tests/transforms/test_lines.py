from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.lines import find_lines, trim
from transforms.unicode_tables import WHITESPACE

texts_of_lines = st.text(st.sampled_from("aa€ \n\r\u2028\u2029\t\u0085中—"), max_size=40)


def array(*texts: str) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def plain_lines(text: str) -> list[str]:
    for end in ("\r\n", "\r", "\u2028", "\u2029"):
        text = text.replace(end, "\n")
    expected = text.split("\n")
    return expected if expected[-1] else expected[:-1]


def plain_trimmed(line: str) -> str:
    black = [place for place, character in enumerate(line) if not WHITESPACE[ord(character)]]
    return line[black[0] : black[-1] + 1] if black else ""


@given(texts_of_lines)
@settings(max_examples=500)
def test_lines_any_text_equal_plain_splitting(text: str) -> None:
    found = find_lines(array(text))
    assert found.strings() == [plain_lines(text)]
    assert found.blank.tolist() == [not plain_trimmed(line) for line in plain_lines(text)]


@given(st.lists(texts_of_lines, max_size=6), st.integers(0, 6), st.integers(0, 6))
@settings(max_examples=200)
def test_lines_sliced_array_equal_each_text_alone(texts: list[str], first: int, length: int) -> None:
    sliced = array(*texts).slice(min(first, len(texts)), length)
    assert find_lines(sliced).strings() == [plain_lines(text) for text in sliced.to_pylist()]


def test_lines_each_length_around_eight_bytes_are_found() -> None:
    texts = ["x" * before + end + "—" * after for before in range(20) for end in "\n\r\u2028" for after in range(4)]
    assert find_lines(array(*texts)).strings() == [plain_lines(text) for text in texts]


def test_lines_null_and_empty_array_have_none() -> None:
    assert find_lines(array()).strings() == []
    assert find_lines(pa.array([None, "a\n\nb", ""], pa.large_string())).strings() == [[], ["a", "", "b"], []]


@given(st.lists(st.text("a \u3000\u00a0😀é", max_size=10), max_size=5))
@settings(max_examples=300)
def test_trim_any_spans_equal_plain_trimming(spans: list[str]) -> None:
    bounds = np.cumsum([0, *(len(span.encode()) for span in spans)])
    data = np.frombuffer("".join(spans).encode(), np.uint8)
    starts, ends = trim(data, bounds[:-1], bounds[1:])
    found = [data[start:end].tobytes().decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    assert found == [plain_trimmed(span) for span in spans]
    empty = starts == ends
    assert (starts[empty] == bounds[:-1][empty]).all()
