"""Windows: what they hold follows from code points alone, whatever the bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.text_windows import windows_of


def expected(text: str, width: int) -> list[str]:
    n = len(text)
    if n <= 3 * width:
        parts = max(1, -(-n // width))
        sizes = [(n + parts - 1 - part) // parts for part in range(parts)]
        ends = [sum(sizes[: part + 1]) for part in range(parts)]
        return [text[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    middle = (n - width) // 2
    return [text[:width], text[middle : middle + width], text[n - width :]]


def found(texts: list[str], width: int) -> list[list[str]]:
    array = pa.array(["before", *texts], pa.large_string()).slice(1)
    windows = windows_of(array, width)
    strings = windows.texts.to_pylist()
    return [strings[a:b] for a, b in zip(windows.offsets[:-1], windows.offsets[1:], strict=True)]


@given(st.lists(st.text(st.sampled_from("aé中😀\n"), max_size=60), max_size=4), st.integers(1, 12))
@settings(max_examples=60)
def test_windows_any_text_are_those_of_its_code_points(texts: list[str], width: int) -> None:
    assert found(texts, width) == [expected(text, width) for text in texts]


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 20, 29, 30, 31, 1000])
def test_windows_text_of_any_length_has_one_to_three_of_at_most_the_width(length: int) -> None:
    (parts,) = found(["ä" * length], 10)
    assert 1 <= len(parts) <= 3 and all(len(part) <= 10 for part in parts)
