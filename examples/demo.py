"""The demo: books, code, licences, languages, web pages and archives to one deduplicated set of documents.

    make demo

or step by step:

    python -m examples.demo_data demo-data
    curate plan examples/demo.py --store demo-store
    curate run examples/demo.py --store demo-store
    curate report demo-store

Six sources of different kinds go through the transforms that suit them, then all are compared with all: where two
documents are near duplicates, the source named first keeps its copy.
"""

from curate import Outputs, deduplicate, field, read_files, read_jsonl, read_parquet, read_warc, recipe
from transforms import (
    GERMAN,
    ExtractText,
    GopherQuality,
    GopherRepetition,
    Language,
    MaskPII,
    MinHash,
    NormalizeText,
    Switch,
)

PERMISSIVE = ("Apache-2.0", "BSD-3-Clause", "CC0-1.0", "MIT")
LANGUAGES = {"en": 0.65, "de": 0.65, "fr": 0.65, "es": 0.65, "pl": 0.65, "ru": 0.65, "ja": 0.65}


@recipe
def demo(data: str = "demo-data") -> Outputs:
    """Return the documents of the demo, from the inputs that `examples.demo_data` makes."""
    books = read_files(f"{data}/books", "**/*.md", source="books", licence="CC0-1.0")
    books = books.apply(NormalizeText(), name="books")

    code = read_parquet(f"{data}/code", source="code", columns={"text": "content", "key": "path", "licence": "license"})
    code = code.where(field("licence").isin(PERMISSIVE), reason="licence", name="code").apply(MaskPII(), name="code")

    licences = read_jsonl(f"{data}/licences", source="licences", columns={"key": "name", "licence": "licence"})

    # A paragraph in each of some 700 languages: without thresholds, Language drops nothing and writes what it sees.
    languages = read_jsonl(f"{data}/languages", source="languages", columns={"key": "name", "licence": "licence"})
    languages = languages.apply(Language(), name="languages")

    web = read_warc(f"{data}/crawl", source="web").apply(
        ExtractText(),
        NormalizeText(),
        Language(LANGUAGES),
        Switch(
            "language",
            en=[GopherRepetition(), GopherQuality()],
            de=[GopherRepetition(), GopherQuality(stop_words=GERMAN)],
            others=[GopherRepetition()],
        ),
        MaskPII(),
        name="web",
    )
    # Archives of many writers, some of them damaged: what is readable is read, the rest is accounted for.
    archives = read_warc(f"{data}/archives", "*", source="archives", on_clash="place")
    archives = archives.apply(ExtractText(), NormalizeText(), MaskPII(), name="archives")

    documents = deduplicate(
        books,
        code,
        licences,
        languages,
        web,
        archives,
        method=MinHash(threshold=0.8),
        prefer=("source", "-length"),
        max_removed={"web": 0.6},
    )
    return Outputs(documents=documents)
