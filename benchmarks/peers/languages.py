"""Language identification of other tools by one model: CPU seconds and the language of each text.

Arguments: a tool and a fastText model. Reads a JSON list of texts from its standard input, writes one JSON object.
dolma: its tagger of all languages; NeMo Curator: its filter's score. Both call fastText once per document, with all of
it.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

Identify = Callable[[str], str]


def dolma(model: str) -> tuple[Identify, str]:
    """Return the best language of dolma's tagger."""
    from dolma.taggers.language import FastTextAllLanguagesDocumentTagger

    class Local(FastTextAllLanguagesDocumentTagger):
        MODEL_PATH = model

    tagger = Local()
    return lambda text: max(tagger.predict_text(text), key=lambda found: found[1])[0], "dolma"


def nemo(model: str) -> tuple[Identify, str]:
    """Return the language of NeMo Curator's filter."""
    from nemo_curator.stages.text.filters.fasttext.fasttext_filters import FastTextLangId

    found = FastTextLangId(model_path=model)
    found.load_model()
    return lambda text: str(ast.literal_eval(found.score_document(text))[1]), "nemo-curator"


TOOLS = {"dolma": dolma, "nemo": nemo}


def main() -> None:
    """Measure: the best of three runs."""
    texts: list[str] = json.load(sys.stdin)
    identify, package = TOOLS[sys.argv[1]](sys.argv[2])
    identify("The small words of a first sentence.")
    times, languages = [], []
    for _ in range(3):
        began = time.process_time()
        languages = [identify(text) for text in texts]
        times.append(time.process_time() - began)
    print(json.dumps({"seconds": min(times), "languages": languages, "versions": {package: version(package)}}))


if __name__ == "__main__":
    main()
