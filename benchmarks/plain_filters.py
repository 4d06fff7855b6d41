"""The rules of C4, FineWeb and Gopher in plain Python, in our reading or in datatrove's, or in any mixture of the two.

Each function takes a text and the names of the readings in which it follows datatrove: none gives our verdict, all of
`READINGS` datatrove's. So a document on which both disagree is explained by the fewest readings that have to change
for the verdicts to agree (`benchmarks.filter_parity`). Words and sentences are ours in both, thresholds datatrove's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import pyarrow as pa

from benchmarks.plain_gopher import bare_symbols, fold, lines_of, spans_of, trim
from transforms.c4_rules import END_MARKS, POLICY
from transforms.findings import Findings
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.marks import SENTENCE_ENDS
from transforms.sentences import count_sentences
from transforms.unicode_tables import ALPHABETIC

Theirs = frozenset[str]


@dataclass(frozen=True, slots=True)
class Reading:
    """A question that both answer otherwise: what datatrove does, and who is right by the paper, and why."""

    theirs: str
    right: str
    why: str


QUALITY: Final[Mapping[str, Reading]] = {
    "blank lines": Reading(
        "blank lines are lines, of which bullets and ellipses are shares",
        "ours",
        "the paper's lines start with a bullet or end with an ellipsis, which blank ones cannot do",
    ),
    "Python's lines": Reading(
        "lines end at form feeds, file separators and U+0085, too, which are stripped",
        "open",
        "the paper does not say what ends a line",
    ),
    "ellipses": Reading(
        "'......' is two ellipses",
        "open",
        "the paper counts 'the ellipsis' and says nothing of longer runs",
    ),
    "bare symbols": Reading(
        "symbols that stand alone ('|', '--') are no words, as the words given to it are ours",
        "open",
        "with datatrove's own words they are; in both the rule is on words without letters",
    ),
    "case of stop words": Reading(
        "'The' is no stop word", "ours", "the paper's is a word: a text of sentences that begin with it has it"
    ),
    "wide digit one": Reading(
        "U+FF11, a digit, is on the list of punctuation, so a word of it is no word", "ours", "a digit is no symbol"
    ),
    "Python's letters": Reading(
        "letters are those of the interpreter's Unicode version", "ours", "the same text has one verdict everywhere"
    ),
}

REPETITION: Final[Mapping[str, Reading]] = {
    "empty text": Reading(
        "the empty text is repetitive", "ours", "nothing is repeated in it; too few words, by quality"
    ),
    "single n-grams": Reading(
        "an n-gram that occurs once is the most frequent one", "ours", "table A1 is on repetitious text"
    ),
    "whole text": Reading(
        "shares are of all characters, with spaces and punctuation, the parts of them without",
        "ours",
        "a fraction has its parts and its whole in one unit; 'a fraction of characters' fits both",
    ),
    "case of n-grams": Reading("'The end' is another 2-gram than 'the end'", "open", "the paper says nothing of case"),
    "spaces in n-grams": Reading(
        "the most frequent n-gram is counted with spaces between its words, duplicate ones without",
        "open",
        "the paper does not say; but one way for both",
    ),
    "overlaps": Reading(
        "characters of overlapping occurrences of the most frequent n-gram count several times, so shares exceed 1",
        "ours",
        "a fraction of the characters 'contained within' it is at most 1",
    ),
    "ties": Reading(
        "of equally frequent n-grams the first in the text counts",
        "ours",
        "the verdict should not hang on their order; DCLM, too, takes the one that covers most",
    ),
    "skipping": Reading(
        "a duplicate n-gram is skipped as a whole, so those that begin within it are not looked at",
        "ours",
        "'taking care not to count characters that occur in overlapping n-grams more than once': of all n-grams",
    ),
    "line ends": Reading(
        "lines and paragraphs end at line feeds only, keep their White_Space, and blank ones with spaces are lines",
        "ours",
        "a line with a space at its end is the same line to a reader, a blank one is none",
    ),
}

C4: Final[Mapping[str, Reading]] = {
    "Python's lines": Reading(
        "lines end at form feeds, file separators and U+0085, too, which are stripped", "open", "the paper does not say"
    ),
    "words between spaces": Reading(
        "a line's words are what stands between spaces: dashes and citations are words, Chinese has one",
        "ours",
        "'— — —' are no three words, and a citation is removed before lines are judged",
    ),
    "apostrophe": Reading("a line may end in an apostrophe", "ours", "the paper's and the code's marks have it not"),
    "typographic quote": Reading("” is no end quotation mark", "ours", "the paper wants 'end quotation mark'"),
    "space before a citation": Reading(
        "'text. [1]' ends in a space once the citation is removed, so the line goes",
        "ours",
        "the line ends in terminal punctuation",
    ),
    "letters anywhere": Reading(
        "'javascripts' has the word Javascript, 'reuses cookies' has 'uses cookies', 'lorem-ipsum' no phrase",
        "ours",
        "the paper: 'any line with the word Javascript', 'the phrase'; in both phrases hyphens stand for spaces",
    ),
    "brackets in lines left": Reading(
        "brackets and placeholders are looked for in lines that passed the rules on marks and words",
        "ours",
        "the paper: 'any page that contained a curly bracket', 'any page where the phrase appeared'",
    ),
    "digits of citations": Reading(
        "citations may have digits of any script", "open", "in the code only, by the interpreter's tables"
    ),
    "words grown together": Reading(
        "'word[1]next' becomes 'wordnext'", "open", "citations are in the code only; here words stay apart"
    ),
}

FINEWEB: Final[Mapping[str, Reading]] = {
    "empty text": Reading("a text without lines goes", "open", "no evidence; too few words by Gopher's rules"),
    "line ends": Reading(
        "lines end at line feeds only and keep White_Space at both ends: 'text. ' ends in no punctuation, and indented "
        "lines are long",
        "ours",
        "the paper: 'lines ending with punctuation', 'shorter than 30 characters'",
    ),
    "Python's spaces": Reading("a line of U+001C … U+001F is blank", "open", "the paper does not say"),
    "whole text": Reading(
        "characters of duplicate lines are a share of all characters but line feeds",
        "ours",
        "blank lines and indentation are not 'in duplicated lines', and repeated lines are counted without them",
    ),
    "end marks": Reading(
        "some marks of Unicode's Sentence_Terminal are missing",
        "ours",
        "'punctuation' of any script; the list is older",
    ),
    "line breaks": Reading("carriage returns and U+2028 are no line breaks", "open", "not in the paper"),
    "no words": Reading(
        "a text with lines and no words stops the program (division by zero)", "ours", "a verdict is due"
    ),
}

MC4: Final[Mapping[str, Reading]] = {
    "line ends": Reading(
        "lines end at line feeds only and keep White_Space at both ends", "open", "the paper: 'lines of text'"
    ),
}

READINGS: Final[Mapping[str, Mapping[str, Reading]]] = {
    "GopherQuality": QUALITY,
    "GopherRepetition": REPETITION,
    "C4": C4,
    "FineWebQuality": FINEWEB,
    "MC4Paragraphs": MC4,
}
"""Per filter, the readings that differ."""

Verdict = str | tuple[str, str] | None
"""The reason to drop; None, or ("text", what is left of it), to keep."""


@lru_cache(maxsize=8)
def _spans(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(spans_of(text))


@lru_cache(maxsize=8)
def words_of(text: str) -> tuple[str, ...]:
    """Return our words of `text`."""
    return tuple(text[start:end] for start, end in _spans(text))


def sentences_of(line: str) -> int:
    """Return our count of the sentences in a line."""
    return int(count_sentences(Findings(pa.array([line], pa.large_string()))).sum())


def plain_quality(text: str, theirs: Theirs, rules: GopherQuality = GopherQuality()) -> Verdict:  # noqa: B008 (frozen)
    """Return the first of Gopher's quality rules that `text` fails."""
    words = list(words_of(text))
    real = [word for word in words if set(word) != {"１"}] if "wide digit one" in theirs else words
    if len(real) < 50:
        return "too few words"
    if len(real) > 100_000:
        return "too many words"
    mean = sum(map(len, real)) / len(real)
    if not 3 <= mean <= 10:
        return "words too short" if mean < 3 else "words too long"
    ellipses = text.count("...") if "ellipses" in theirs else len(re.findall(r"\.{3,}", text))
    if text.count("#") / len(words) > 0.1:
        return "too many hashes"
    if (ellipses + text.count("…")) / len(words) > 0.1:
        return "too many ellipses"
    if "Python's lines" in theirs:
        lines = [line.strip() for line in text.splitlines()]
    else:
        lines = [trim(line) for line in lines_of(text)]
        lines = lines[:-1] if not lines[-1] and lines_of(text)[-1] == "" else lines
    lines = lines if "blank lines" in theirs else [line for line in lines if line]
    if sum(line.startswith(("•", "-")) for line in lines) / len(lines) > 0.9:
        return "too many bulleted lines"
    if sum(line.endswith(("...", "…")) for line in lines) / len(lines) > 0.3:
        return "too many lines end with an ellipsis"
    tokens = len(words) + (0 if "bare symbols" in theirs else bare_symbols(text, list(_spans(text))))
    is_letter = str.isalpha if "Python's letters" in theirs else lambda character: bool(ALPHABETIC[ord(character)])
    if sum(any(map(is_letter, word)) for word in words) / tokens < 0.8:
        return "too few alphabetic words"
    distinct = set(words) if "case of stop words" in theirs else set(map(fold, words))
    return "too few stop words" if len(distinct & set(rules.stop_words)) < 2 else None


def plain_repetition(text: str, theirs: Theirs, rules: GopherRepetition = GopherRepetition()) -> Verdict:  # noqa: B008
    """Return a rule of repetition that `text` fails."""
    if not text:
        return "empty" if "empty text" in theirs else None
    if "line ends" in theirs:
        paragraphs, lines = re.split(r"\n{2,}", text.strip()), re.split("\n+", text)
    else:
        trimmed = [trim(line) for line in lines_of(text)]
        lines = [line for line in trimmed if line]
        joined = "\n".join(trimmed)
        paragraphs = [part.strip("\n") for part in re.split(r"\n{2,}", joined) if part.strip("\n")]
    for kind, items in (("paragraphs", paragraphs), ("lines", lines)):
        later, seen = [], set[str]()
        for item in items:
            later += [item] if item in seen else []
            seen.add(item)
        if later and len(later) / len(items) > 0.3:
            return f"too many duplicate {kind}"
        whole = len(text) if "whole text" in theirs else _length(items, theirs)
        if later and _length(later, theirs) / whole > 0.2:
            return f"too many characters in duplicate {kind}"
    words = list(words_of(text))
    words = words if "case of n-grams" in theirs else [fold(word) for word in words]
    whole = len(text) if "whole text" in theirs else sum(map(len, words))
    for n, threshold in rules.max_characters_in_top_grams:
        if whole and _top(words, n, theirs) / whole > threshold:
            return f"too many characters in the top {n}-gram"
    for n, threshold in rules.max_characters_in_duplicate_grams:
        if whole and _duplicates(words, n, theirs) / whole > threshold:
            return f"too many characters in duplicate {n}-grams"
    return None


def _length(items: list[str], theirs: Theirs) -> int:
    """Return the characters of lines or paragraphs; ours are those of lines, without the breaks between them."""
    return sum(len(item) if "line ends" in theirs else len(item.replace("\n", "")) for item in items)


def _places(words: list[str], n: int) -> dict[tuple[str, ...], list[int]]:
    places: dict[tuple[str, ...], list[int]] = {}
    for place in range(len(words) - n + 1):
        places.setdefault(tuple(words[place : place + n]), []).append(place)
    return places


def _top(words: list[str], n: int, theirs: Theirs) -> int:
    """Return the characters of the most frequent n-gram."""
    places = _places(words, n)
    if not places:
        return 0
    most = max(map(len, places.values()))
    if most == 1 and "single n-grams" not in theirs:
        return 0
    found = [gram for gram, at in places.items() if len(at) == most]
    lengths = [_covered(words, n, gram, places[gram], theirs) for gram in found]
    return lengths[0] if "ties" in theirs else max(lengths)


def _covered(words: list[str], n: int, gram: tuple[str, ...], places: list[int], theirs: Theirs) -> int:
    spaces = (n - 1) * len(places) if "spaces in n-grams" in theirs else 0
    if "overlaps" in theirs:
        return sum(map(len, gram)) * len(places) + spaces
    covered = {index for place in places for index in range(place, place + n)}
    joins = {index for place in places for index in range(place, place + n - 1)} if spaces else set()
    return sum(len(words[index]) for index in covered) + len(joins)


def _duplicates(words: list[str], n: int, theirs: Theirs) -> int:
    """Return the characters of duplicate n-grams."""
    seen, covered, place = set[tuple[str, ...] | str](), set[int](), 0
    while place <= len(words) - n:
        gram: tuple[str, ...] | str = tuple(words[place : place + n])
        if "skipping" in theirs:
            gram = "".join(gram)
        if gram in seen:
            covered.update(range(place, place + n))
            place += n if "skipping" in theirs else 1
        else:
            seen.add(gram)
            place += 1
    return sum(len(words[index]) for index in covered)


CITATION: Final = re.compile(r"\[\d*]|\[edit]|\[citation needed]")
OUR_CITATION: Final = re.compile(r"\[[0-9]*]|\[edit]|\[citation needed]")


def plain_c4(text: str, theirs: Theirs) -> Verdict:
    """Return why C4's rules drop `text`, or what they leave, lines stripped and joined by line feeds."""
    if "Python's lines" in theirs:
        lines = [line.strip() for line in text.splitlines()]
    else:
        lines = [trim(line) for line in lines_of(text)]
    if "brackets in lines left" not in theirs:
        if "{" in text:
            return "curly bracket"
        if any(_has(line, ("lorem ipsum",), theirs) for line in lines):
            return "placeholder text"
    kept, sentences = [], 0
    for line in lines:
        left = _c4_line(line, theirs)
        if left is None:
            continue
        if "brackets in lines left" in theirs and _has(left, ("lorem ipsum",), theirs):
            return "placeholder text"
        if _has(left, ("javascript",), theirs):
            continue
        if "brackets in lines left" in theirs and "{" in left:
            return "curly bracket"
        if _has(left, POLICY, theirs):
            continue
        sentences += sentences_of(left)
        kept.append(left)
    if sentences < 5:
        return "too few sentences"
    return "text", "\n".join(line.strip() for line in kept).strip()


def _c4_line(line: str, theirs: Theirs) -> str | None:
    """Return what is left of a line by the rules on long words, marks and words, or None."""
    citation = CITATION if "digits of citations" in theirs else OUR_CITATION
    if any(len(run) > 1000 for run in line.split()):
        return None
    spans = [(match.start(), match.end()) for match in citation.finditer(line)]
    if "words between spaces" in theirs:
        count = len(line.split())
    else:
        outside = [start for start, _ in spans_of(line) if not any(first < start < last for first, last in spans)]
        count = len(outside)
    left = citation.sub("" if "words grown together" in theirs else _gap, line)
    marks = {*END_MARKS} | ({"'"} if "apostrophe" in theirs else set())
    marks -= {"”"} if "typographic quote" in theirs else set()
    tail = left if "space before a citation" in theirs else trim(left)
    if not tail.endswith(tuple(marks)) or tail.endswith("..."):
        return None
    return None if count < 3 else left


def _gap(citation: re.Match[str]) -> str:
    """Return a space for a citation between letters or digits, else nothing."""
    around = citation.string[: citation.start()][-1:], citation.string[citation.end() :][:1]
    return " " if all(any(start == 0 for start, _ in spans_of(character)) for character in around) else ""


def _has(line: str, phrases: tuple[str, ...], theirs: Theirs) -> bool:
    if "letters anywhere" in theirs:
        return any(phrase in line.lower() for phrase in phrases)
    spans = list(spans_of(line))
    words = [fold(line[start:end]) for start, end in spans]
    gaps = [line[a[1] : b[0]] for a, b in pairwise(spans)]
    joins = [not trim(re.sub("[-\u2010\u2011]", "", gap)) for gap in gaps]
    for phrase in phrases:
        wanted = phrase.split()
        for place in range(len(words) - len(wanted) + 1):
            if words[place : place + len(wanted)] == wanted and all(joins[place : place + len(wanted) - 1]):
                return True
    return False


def plain_fineweb(text: str, theirs: Theirs) -> Verdict:
    """Return the first of FineWeb's rules, with the code's .01 for duplicate lines, that `text` fails."""
    raw = text.split("\n") if "line ends" in theirs else [trim(line) for line in lines_of(text)]
    lines = [line for line in raw if (line.strip() if "Python's spaces" in theirs else trim(line))]
    breaks = text.count("\n") if "line breaks" in theirs else len(lines_of(text)) - 1
    if not lines:
        return "empty" if "empty text" in theirs else "too many line breaks" if breaks else None
    marks = _their_marks() if "end marks" in theirs else SENTENCE_ENDS
    if sum(line.endswith(tuple(marks)) for line in lines) / len(lines) < 0.12:
        return "too few lines end in punctuation"
    if sum(len(line) <= 30 for line in lines) / len(lines) > 0.67:
        return "too many short lines"
    counted, later, seen = sum(map(len, lines)), 0, set[str]()
    for line in lines:
        later += len(line) if line in seen else 0
        seen.add(line)
    if later / (len(text.replace("\n", "")) if "whole text" in theirs else counted) > 0.01:
        return "too many characters in duplicate lines"
    if not words_of(text):
        return "error" if "no words" in theirs else "too many line breaks" if breaks else None
    return "too many line breaks" if breaks / len(words_of(text)) > 0.3 else None


def plain_mc4(text: str, theirs: Theirs) -> Verdict:
    """Return whether `text` has fewer than three lines of 200 characters."""
    lines = text.split("\n") if "line ends" in theirs else [trim(line) for line in lines_of(text)]
    return None if sum(len(line) >= 200 for line in lines) >= 3 else "too few long lines"


MISSING: Final = "᭎᭏᭿․⳹⳺⳻⹠⹡︒︕︖\U000113d4\U000113d5\U00016d6e\U00016d6f"
"""Marks of Sentence_Terminal that datatrove's list lacks."""


def _their_marks() -> tuple[str, ...]:
    return tuple(mark for mark in SENTENCE_ENDS if mark not in MISSING)


PLAIN: Final = {
    "GopherQuality": plain_quality,
    "GopherRepetition": plain_repetition,
    "C4": plain_c4,
    "FineWebQuality": plain_fineweb,
    "MC4Paragraphs": plain_mc4,
}
"""Per filter, the function."""
