"""Gopher's rules in plain Python, by definition and not by speed: what `transforms.gopher_rules` is compared with.

Words come from `find_words`, which has its own reference (the rules of UAX #29 as written); lines, symbols, stop words,
duplicates and n-grams are counted here anew, one text at a time. Thresholds are the fields of the two filters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from transforms.exact_numbers import Number, exact
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.segmentation import find_words
from transforms.unicode_tables import ALPHABETIC, LOWER, WHITESPACE

Rule = tuple[str, int, int, str, Number | None]
"""Reason, numerator, denominator, "≥" or "≤", threshold."""


def quality_reason(text: str, rules: GopherQuality) -> str | None:
    """Return the first rule that `text` fails, or None."""
    return _first_failing(_quality(text, rules))


def repetition_reason(text: str, rules: GopherRepetition) -> str | None:
    """Return the first rule that `text` fails, or None."""
    return _first_failing(_repetition(text, rules))


def _first_failing(rules: Iterable[Rule]) -> str | None:
    for reason, numerator, denominator, sense, threshold in rules:
        if threshold is None:
            continue
        bound = exact(threshold) * denominator
        if numerator > bound if sense == "≤" else numerator < bound:
            return reason
    return None


def _quality(text: str, rules: GopherQuality) -> Iterator[Rule]:
    spans = list(spans_of(text))
    words, lines = [text[start:end] for start, end in spans], [trim(line) for line in lines_of(text)]
    count, characters = len(words), sum(map(len, words))
    lines = [line for line in lines if line]
    bulleted = sum(line.startswith(rules.bullets) for line in lines)
    ellipsis_lines = sum(line.endswith(("...", "…")) for line in lines)
    ellipses = text.count("…") + len(re.findall(r"\.{3,}", text))
    alphabetic = sum(any(ALPHABETIC[ord(character)] for character in word) for word in words)
    stop_words = len({fold(word) for word in words} & {fold(word) for word in rules.stop_words})
    yield "too few words", count, 1, "≥", rules.min_words
    yield "too many words", count, 1, "≤", rules.max_words
    yield "words too short", characters, count, "≥", rules.min_mean_word_length
    yield "words too long", characters, count, "≤", rules.max_mean_word_length
    yield "too many hashes", text.count("#"), count, "≤", rules.max_hashes_per_word
    yield "too many ellipses", ellipses, count, "≤", rules.max_ellipses_per_word
    yield "too many bulleted lines", bulleted, len(lines), "≤", rules.max_bulleted_lines
    yield "too many lines end with an ellipsis", ellipsis_lines, len(lines), "≤", rules.max_ellipsis_lines
    tokens = count + bare_symbols(text, spans)
    yield "too few alphabetic words", alphabetic, tokens, "≥", rules.min_alphabetic_words
    yield "too few stop words", stop_words, 1, "≥", rules.min_stop_words


def _repetition(text: str, rules: GopherRepetition) -> Iterator[Rule]:
    lines, paragraphs = _items([trim(line) for line in lines_of(text)])
    for kind, items, most, most_characters in (
        ("lines", lines, rules.max_duplicate_lines, rules.max_characters_in_duplicate_lines),
        ("paragraphs", paragraphs, rules.max_duplicate_paragraphs, rules.max_characters_in_duplicate_paragraphs),
    ):
        later = _duplicates(items)
        yield f"too many duplicate {kind}", len(later), len(items), "≤", most
        yield (
            f"too many characters in duplicate {kind}",
            _characters(later),
            _characters(items),
            "≤",
            most_characters,
        )
    words = [text[start:end] for start, end in spans_of(text)]
    total = sum(map(len, words))
    for n, threshold in rules.max_characters_in_top_grams:
        yield f"too many characters in the top {n}-gram", _top_gram(words, n), total, "≤", threshold
    for n, threshold in rules.max_characters_in_duplicate_grams:
        yield f"too many characters in duplicate {n}-grams", _duplicate_grams(words, n), total, "≤", threshold


def spans_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of each word, in code points."""
    words = find_words(pa.array([text], pa.large_string()))
    raw, place, before = text.encode(), 0, 0
    for start, end in zip(words.starts.tolist(), words.ends.tolist(), strict=True):
        first = place + len(raw[before:start].decode())
        place, before = first + len(raw[start:end].decode()), end
        yield first, place


def lines_of(text: str) -> list[str]:
    """Return what stands between line breaks; behind the last one, too."""
    return re.split("\r\n|[\n\r\u2028\u2029]", text)


def trim(text: str) -> str:
    """Return `text` without White_Space at both ends."""
    black = [place for place, character in enumerate(text) if not WHITESPACE[ord(character)]]
    return text[black[0] : black[-1] + 1] if black else ""


def fold(word: str) -> str:
    """Return `word` as its hash sees it."""
    return "".join("'" if character == "\u2019" else chr(LOWER[ord(character)]) for character in word)


def bare_symbols(text: str, spans: list[tuple[int, int]]) -> int:
    """Return how many runs between White_Space hold no word."""
    marked = [" " if WHITESPACE[ord(character)] else "s" for character in text]
    for start, end in spans:
        marked[start:end] = "w" * (end - start)
    return sum("w" not in run for run in "".join(marked).split())


def _items(lines: list[str]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the lines that are not blank, and the runs of them, each as a tuple of lines."""
    paragraphs: list[tuple[str, ...]] = [()]
    for line in lines:
        paragraphs[-1:] = [(*paragraphs[-1], line)] if line else [paragraphs[-1], ()]
    return [(line,) for line in lines if line], [paragraph for paragraph in paragraphs if paragraph]


def _duplicates(items: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return every occurrence after the first."""
    return list((Counter(items) - Counter(set(items))).elements())


def _characters(items: list[tuple[str, ...]]) -> int:
    return sum(len(line) for item in items for line in item)


def _grams(words: list[str], n: int) -> dict[tuple[str, ...], list[int]]:
    """Return where each n-gram occurs, of words in lower case."""
    folded, places = [fold(word) for word in words], dict[tuple[str, ...], list[int]]()
    for place in range(len(words) - n + 1):
        places.setdefault(tuple(folded[place : place + n]), []).append(place)
    return places


def _covered(words: list[str], starts: Iterable[int], n: int) -> int:
    """Return the code points of the words that n-grams at `starts` cover, each once."""
    return sum(len(words[place]) for place in {start + k for start in starts for k in range(n)})


def _top_gram(words: list[str], n: int) -> int:
    places = _grams(words, n).values()
    most = max(map(len, places), default=0)
    return max((_covered(words, starts, n) for starts in places if len(starts) == most), default=0) if most > 1 else 0


def _duplicate_grams(words: list[str], n: int) -> int:
    return _covered(words, (start for starts in _grams(words, n).values() for start in starts[1:]), n)
