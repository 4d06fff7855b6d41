"""NeMo Curator's heuristic filters over texts, called directly: run by an interpreter that has its package.

    python -m venv nemo && nemo/bin/pip install --no-deps nemo-curator==1.4.0 cosmos-xenna==0.2.0
    nemo/bin/pip install loguru regex pandas pyarrow jieba==0.42.1 fsspec ray attrs cattrs psutil pydantic tabulate

(with what else it asks for: the whole package needs torch and transformers, which these functions do not use).
Reads a JSON list of texts from its standard input, writes CPU seconds and how many documents stay.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def filters() -> list[Any]:
    """Return the chain: Gopher's repetition (lines, paragraphs, n-grams) and quality, then what C4 and FineWeb have."""
    from nemo_curator.stages.text.filters.heuristic import repetition, string

    top = [repetition.RepeatingTopNGramsFilter(n, most) for n, most in ((2, 0.2), (3, 0.18), (4, 0.16))]
    most = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.1}
    return [
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


def keeps(chain: list[Any], text: str) -> bool:
    """Return whether all filters keep `text`; one that divides by zero does not."""
    try:
        return all(one.keep_document(one.score_document(text)) for one in chain)
    except ZeroDivisionError:
        return False


def main() -> None:
    """Measure."""
    texts, chain = json.load(sys.stdin), filters()
    keeps(chain, texts[0])
    start = time.process_time()
    stays = sum(keeps(chain, text) for text in texts)
    print(json.dumps({"seconds": time.process_time() - start, "stays": stays}))


if __name__ == "__main__":
    main()
