"""Features: the kernels agree with a plain description of them; what they see of a text, and what they do not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from transforms.segmentation import find_words
from transforms.text_features import (
    FORM_PAIR,
    FORM_TRIPLE,
    GAP_PAIR,
    GAP_TRIPLE,
    LINE,
    MOST_COUNTED,
    PAIR,
    WORD,
    common_words,
    features_of,
    occurrences_of,
)
from transforms.unicode_tables import CLASS, CONNECTOR, LETTER, LOWER, PUNCTUATION, SYMBOL
from transforms.word_hashes import hash_words

NONE = np.zeros(0, np.uint64)


def array(*texts: str) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def kinds_of(text: str, common: np.ndarray = NONE) -> Counter[int]:  # type: ignore[type-arg]
    return Counter(occurrences_of(array(text), common, 18).kinds.tolist())


def buckets(text: str, kind: int, common: np.ndarray = NONE) -> list[int]:  # type: ignore[type-arg]
    found = occurrences_of(array(text), common, 18)
    return found.buckets[found.kinds == kind].tolist()


def test_features_each_word_has_one_of_each_kind_and_pairs_end_at_lines() -> None:
    assert kinds_of("One two three.\nFour five") == {
        WORD: 5, PAIR: 3, FORM_PAIR: 5, FORM_TRIPLE: 5, GAP_PAIR: 5, GAP_TRIPLE: 5, LINE: 1,
    }  # fmt: skip


def test_features_words_are_folded_and_forms_are_not() -> None:
    assert buckets("River", WORD) == buckets("river", WORD)
    assert buckets("River", FORM_PAIR) != buckets("river", FORM_PAIR)
    assert buckets("old house", FORM_PAIR) == buckets("new field", FORM_PAIR)  # shapes of words, not words
    assert buckets("old house", PAIR) != buckets("new field", PAIR)


def test_features_common_words_stand_for_themselves_in_forms() -> None:
    words, counts = common_words(array("the a the", "the b"))
    common = words[counts == 2]
    assert len(common) == 1
    assert buckets("old the", FORM_PAIR, common) != buckets("old ask", FORM_PAIR, common)
    assert buckets("old the", FORM_PAIR) == buckets("old ask", FORM_PAIR)


def test_features_gaps_tell_lines_and_punctuation() -> None:
    gaps = ["a b", "a, b", "a; b", "a\nb", "a\n\nb", "a — b", "a.\nb"]
    assert len({tuple(buckets(text, GAP_PAIR)) for text in gaps}) == len(gaps)
    assert buckets("a\n\nb", GAP_PAIR) == buckets("a\n\n\n\nb", GAP_PAIR)


def test_features_counts_become_sixteenths_of_logarithms_and_are_capped() -> None:
    for count, value in ((1, 16), (2, 32), (3, 41), (4, 48), (1000, 16 + 127)):
        found = features_of(array(" ".join(["word"] * count)), NONE, 18)
        (bucket,) = set(buckets("word", WORD))
        assert found.values[found.buckets == bucket].tolist() == [value], count
    assert MOST_COUNTED == 255


def test_features_of_a_batch_are_those_of_its_texts() -> None:
    texts = ["One two.\nThree", "", "中文字符 ภาษา", "x" * 5000, " . ! \n"]
    whole = features_of(array(*texts), NONE, 12)
    for place, text in enumerate(texts):
        alone = features_of(array(text), NONE, 12)
        span = slice(whole.offsets[place], whole.offsets[place + 1])
        assert whole.buckets[span].tolist() == alone.buckets.tolist()
        assert whole.values[span].tolist() == alone.values.tolist()
        assert whole.squares[place] == (alone.values.astype(np.int64) ** 2).sum() == alone.squares[0]


MASK = (1 << 64) - 1
FACTOR = 0x9E3779B97F4A7C15


def mixed(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & MASK
    return value ^ value >> 33


def bucket(kind: int, *parts: int) -> int:
    value = (kind * FACTOR & MASK ^ parts[0]) * FACTOR & MASK
    for part in parts[1:]:
        value = (value ^ value >> 32 ^ part) * FACTOR & MASK
    return mixed(value) >> 46


def shape(word: str) -> int:
    kinds = [int(CLASS[ord(c)]) for c in word]
    capital = [int(LOWER[ord(c)]) != ord(c) for c in word]
    size = sum(len(word.encode()) >= least for least in (1, 2, 3, 4, 6, 9, 14))
    others = any(kind != LETTER for kind in kinds[1:])
    return (((kinds[0] * 2 + capital[0]) * 2 + any(capital[1:])) * 2 + others) * 16 + size


def gap_of(between: str) -> int:
    signs = [c for c in between if c != "\n" and CLASS[ord(c)] in (CONNECTOR, PUNCTUATION, SYMBOL)]
    values = [ord(c) if ord(c) < 0x80 else 0x80 + int(CLASS[ord(c)]) for c in signs] or [0]
    lines = min(between.count("\n"), 2)
    return ((lines * 256 + values[0]) * 256 + values[-1]) * 2 + bool(between)


def described(text: str, common: set[int]) -> list[int]:
    """Return the buckets of `text` as the module describes them, 2^18 in all."""
    words = find_words(array(text))
    hashes = [int(value) for value in hash_words(words)]
    data = text.encode()
    spans = list(zip(words.starts.tolist(), words.ends.tolist(), strict=True))
    found, line = [], 0
    c1 = c2 = g1 = g2 = 0
    for w, (start, end) in enumerate(spans):
        c = hashes[w] if hashes[w] in common else shape(data[start:end].decode())
        gap = gap_of(data[spans[w - 1][1] : start].decode()) if w else 1 << 17
        g, breaks = (gap + 2 if w else 1), gap >= 1 << 17
        found.append(bucket(WORD, hashes[w], 0, 0))
        found += [] if breaks else [bucket(PAIR, hashes[w - 1], hashes[w], 0)]
        found.append(bucket(FORM_PAIR, c1, g, c))
        found.append(bucket(FORM_TRIPLE, c2 * FACTOR & MASK ^ g1, c1 * FACTOR & MASK ^ g, c))
        found += [bucket(GAP_PAIR, g1, g, 0), bucket(GAP_TRIPLE, g2, g1, g)]
        found += [bucket(LINE, min(line, 31), g, 0)] if breaks and w else []
        line = 1 if breaks else line + 1
        c2, c1, g2, g1 = c1, c, g1, g
    return found


@pytest.mark.parametrize(
    "text", ["The old mill, 1889.\nNext: iPhone's “Straße”\n\n• 中文字 ภาษา x_y — …", "", "a\n" * 40]
)
def test_features_are_those_that_are_described(text: str) -> None:
    common = common_words(array("the next"))[0]
    found = occurrences_of(array(text), common, 18)
    assert found.buckets.tolist() == described(text, {int(value) for value in common})


def test_features_golden_buckets_stay() -> None:
    found = occurrences_of(array("The old mill, 1889.\nNext"), common_words(array("the"))[0], 18)
    assert found.buckets.tolist()[:6] == GOLDEN


GOLDEN = [62864, 37124, 57716, 182317, 141027, 84260]
"""A model's weights belong to buckets: one that changes makes every model wrong, so raise `features` of the learner."""
