"""The worse texts of the benchmark of classifiers are what it says they are."""

from __future__ import annotations

from benchmarks.classifier import higher, shuffled, tidy, truncated

TEXT = "One two three four five.\nSix seven eight nine ten.\nEleven"


def test_truncated_copy_has_six_tenths_of_the_words_of_each_line() -> None:
    assert truncated(TEXT) == "One two three\nSix seven eight\nEleven"


def test_shuffled_copy_has_the_same_words_in_lines_as_long() -> None:
    found = shuffled(TEXT)
    assert found == shuffled(TEXT) != TEXT
    assert sorted(found.split()) == sorted(TEXT.split())
    assert [len(line.split()) for line in found.split("\n")] == [5, 5, 1]


def test_tidy_text_has_no_white_space_around_lines_and_pairs_count_only_when_higher() -> None:
    assert tidy("  a \n\n\t b\n") == "a\nb"
    assert higher([2, 1, 1], [1, 1, 2]) == 1 / 3
