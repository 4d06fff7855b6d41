"""Heuristic filters of other tools, called directly on texts: CPU seconds and how many documents stay.

Argument: a tool. Reads a JSON list of texts from its standard input, writes one JSON object. Chains are as near to
Gopher repetition, Gopher quality, C4, FineWeb as the tool's own functions come:

nemo         NeMo Curator: repetition by lines, paragraphs and n-grams, Gopher quality, what it has of C4 and FineWeb
dolma        gopher_v1 and c4_v2, which tag: nothing is dropped, so every document gets all of both
data-juicer  lengths, special and alphanumeric characters, repeated characters and words, words; without those of its
             filters that fetch a model or list when they run
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Chain = Callable[[str], bool]


def nemo() -> tuple[Chain, str]:
    """Return NeMo Curator's chain; a document on which it divides by zero goes."""
    from nemo_curator.stages.text.filters.heuristic import repetition, string

    top = [repetition.RepeatingTopNGramsFilter(n, most) for n, most in ((2, 0.2), (3, 0.18), (4, 0.16))]
    most = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.1}
    chain: list[Any] = [
        repetition.RepeatedParagraphsFilter(),
        repetition.RepeatedParagraphsByCharFilter(),
        repetition.RepeatedLinesFilter(),
        repetition.RepeatedLinesByCharFilter(),
        *top,
        *(repetition.RepeatingDuplicateNGramsFilter(n, share) for n, share in most.items()),
        string.WordCountFilter(),
        string.MeanWordLengthFilter(),
        string.SymbolsToWordsFilter(),
        string.BulletsFilter(),
        string.EllipsisFilter(),
        string.WordsWithoutAlphabetsFilter(),
        string.CommonEnglishWordsFilter(),
        string.LongWordFilter(),
        string.BoilerPlateStringFilter(),
        string.PunctuationFilter(),
    ]

    def keeps(text: str) -> bool:
        try:
            return all(one.keep_document(one.score_document(text)) for one in chain)
        except ZeroDivisionError:
            return False

    return keeps, "nemo-curator"


def dolma() -> tuple[Chain, str]:
    """Return dolma's taggers; all documents stay."""
    from dolma.core.data_types import Document
    from dolma.taggers.c4 import FasterC4Tagger
    from dolma.taggers.gopher import GopherTagger

    taggers: list[Any] = [GopherTagger(), FasterC4Tagger()]

    def keeps(text: str) -> bool:
        document = Document(source="", version=None, id="", text=text)
        for tagger in taggers:
            tagger.predict(document)
        return True

    return keeps, "dolma"


def data_juicer() -> tuple[Chain, str]:
    """Return data-juicer's filters, one document at a time as its own single-sample way has it."""
    from data_juicer.ops.filter.alphanumeric_filter import AlphanumericFilter
    from data_juicer.ops.filter.average_line_length_filter import AverageLineLengthFilter
    from data_juicer.ops.filter.character_repetition_filter import CharacterRepetitionFilter
    from data_juicer.ops.filter.maximum_line_length_filter import MaximumLineLengthFilter
    from data_juicer.ops.filter.special_characters_filter import SpecialCharactersFilter
    from data_juicer.ops.filter.text_length_filter import TextLengthFilter
    from data_juicer.ops.filter.word_repetition_filter import WordRepetitionFilter
    from data_juicer.ops.filter.words_num_filter import WordsNumFilter

    chain: list[Any] = [
        TextLengthFilter(),
        AverageLineLengthFilter(),
        MaximumLineLengthFilter(),
        AlphanumericFilter(),
        SpecialCharactersFilter(),
        WordsNumFilter(),
        CharacterRepetitionFilter(),
        WordRepetitionFilter(),
    ]

    def keeps(text: str) -> bool:
        rows = {"text": [text], "__dj__stats__": [{}]}
        for one in chain:
            rows = one.compute_stats_batched(rows)
            if not next(iter(one.process_batched(rows))):
                return False
        return True

    return keeps, "py-data-juicer"


TOOLS = {"nemo": nemo, "dolma": dolma, "data-juicer": data_juicer}


def main() -> None:
    """Measure."""
    texts: list[str] = json.load(sys.stdin)
    keeps, package = TOOLS[sys.argv[1]]()
    keeps("The small words of a first sentence.\nAnd of a second one.\n" * 20)
    began = time.process_time()
    stays = sum(keeps(text) for text in texts)
    seconds = time.process_time() - began
    print(json.dumps({"seconds": seconds, "stays": stays, "versions": {package: version(package)}}))


if __name__ == "__main__":
    main()
