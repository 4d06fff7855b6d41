"""Chains of filters under the names of the papers that made them: tuples of transforms, to use as they are or in part.

`dataset.apply(*fineweb())`. Each function returns the rules on texts, in the order of its paper or code; what else a
paper did (URL lists, extraction, language, deduplication, classifiers) are transforms and stages of their own, named in
the docstrings. Rules were made for English; `gopher_quality` has stop words of other languages, `by_language` branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from transforms.c4_rules import C4Documents, C4Lines
from transforms.code_rules import CodeQuality, GeneratedCode
from transforms.fineweb_rules import FineWebQuality
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.gopher_stop_words import STOP_WORDS
from transforms.normalise import NormalizeText
from transforms.outcome import Transform
from transforms.refinedweb_rules import RefinedWebLines
from transforms.switch import Switch

Chain = tuple[Transform, ...]

ONE_CHARACTER_WORDS = ("ja", "zh")
"""Languages of which words here are single characters, or nearly so."""


def gopher() -> Chain:
    """Return MassiveText's filters (Rae et al. 2021, appendix A.1.1): quality, then repetition."""
    return (GopherQuality(), GopherRepetition())


def gopher_quality(language: str) -> GopherQuality:
    """Return Gopher's quality rules with the stop words of `language` (BCP 47), or without that rule if it has none.

    Chinese and Japanese words are single characters here, so words are at least one character long, not three.
    """
    rules = GopherQuality()
    if language in ONE_CHARACTER_WORDS:
        rules = replace(rules, min_mean_word_length=1)
    words = STOP_WORDS.get(language)
    return replace(rules, min_stop_words=None) if words is None else replace(rules, stop_words=words)


def by_language(languages: Sequence[str] = tuple(STOP_WORDS), column: str = "language") -> Switch:
    """Return Gopher's quality rules for each of `languages`, by the `column` that `Language()` writes.

    Documents in other languages keep all rules but that on stop words.
    """
    chains: dict[str, Sequence[Transform]] = {language: (gopher_quality(language),) for language in languages}
    return Switch(column, others=(GopherQuality(min_stop_words=None),), **chains)


def c4(banned: Sequence[str] = ()) -> Chain:
    """Return C4's filters in the paper's words (Raffel et al. 2020, section 2.2): pages, then lines, then sentences.

    `banned` are words and phrases; the paper's list is not part of this package. The paper also wants English with a
    probability of .99, and no three sentences twice in the data set.
    """
    pages = C4Documents(banned=tuple(banned), min_sentences=None)
    return (pages, C4Lines(), C4Documents(max_curly_brackets=None, placeholders=()))


def fineweb() -> Chain:
    """Return FineWeb's filters (Penedo et al. 2024, section 3 and its published code): Gopher's, C4's, its own.

    C4's are without the rule on end marks, and with the numbers of datatrove that made the data set: three words per
    line, five sentences, brackets and placeholders looked for in the lines that are left. FineWeb's own are the
    paper's; its code has .01 where the paper has .1: `FineWebQuality(max_characters_in_duplicate_lines=0.01)`. Before
    these come URL lists and English with a score of .65, after them MinHash (14 × 8) within each crawl.
    """
    lines = C4Lines(end_marks=None, min_words=3)
    return (GopherRepetition(), GopherQuality(), lines, C4Documents(min_sentences=5), FineWebQuality())


def refinedweb() -> Chain:
    """Return RefinedWeb's filters (Penedo et al. 2023, section 3.2): repetition, quality, then lines.

    Before these come URL lists, extraction and language (.65), after them MinHash and exact substrings.
    """
    return (GopherRepetition(), GopherQuality(), RefinedWebLines())


def dclm_baseline() -> Chain:
    """Return the heuristic filters of DCLM-baseline (Li et al. 2024, appendix D.2; `dclm_baseline_refinedweb.yaml`).

    As RefinedWeb's, with quality before repetition, at most one blank line in a row, four bullets, and any two stop
    words, the same one twice among them, which here are two different ones. Before these come RefinedWeb's URL lists
    and English with .65, after them near duplicates and the best tenth by a fastText classifier.
    """
    quality = GopherQuality(bullets=("●", "•", "*", "-"))
    blank_lines = NormalizeText(max_trailing_spaces=None, max_spaces=None, max_blank_lines=1, form=None)
    return (blank_lines, quality, GopherRepetition(), RefinedWebLines())


def code() -> Chain:
    """Return rules for source files (Codex, StarCoder, StarCoder 2): generated, then lines, characters, minified."""
    return (GeneratedCode(), CodeQuality())
