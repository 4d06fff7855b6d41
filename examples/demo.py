"""The demo: six kinds of sources to training batches, on one page.

    make demo

or step by step:

    python -m examples.demo_data demo-data
    curate plan examples/demo.py --store demo-store
    curate run examples/demo.py --store demo-store
    curate report demo-store
    curate train demo-store --run demo-run --steps 200

Books, code, licences, languages, dialogues, web pages and archives go through the transforms that suit them; all are
compared with all, and where two are near duplicates the source named first keeps its copy; documents that hold items of
a benchmark go; a part is held out; a tokenizer is trained on the rest, and a mixture of two phases compiled to a plan.
"""

from curate import (
    Cells,
    Dataset,
    Datasheet,
    Outputs,
    decontaminate,
    deduplicate,
    field,
    hold_out,
    read_files,
    read_jsonl,
    read_parquet,
    read_warc,
    recipe,
    tokenize,
    train_tokenizer,
)
from mixtures import AtMost, Chunks, Mixture, Phase
from transforms import (
    GERMAN,
    Benchmark,
    ExtractText,
    GopherQuality,
    GopherRepetition,
    Language,
    MaskPII,
    MinHash,
    NormalizeText,
    RespectOptOut,
    Switch,
)

PERMISSIVE = ("Apache-2.0", "BSD-3-Clause", "CC0-1.0", "MIT")
LANGUAGES = {"en": 0.5, "de": 0.5, "fr": 0.5, "es": 0.5, "pl": 0.5, "ru": 0.5, "ja": 0.5}


SHEET = Datasheet(
    purpose="To show in a few minutes what curate does, from raw files to batches of training.",
    creators="The makers of curate, of texts that others published",
    avoid="Training a model that anyone relies on: it is far too small, and of a few sources only.",
    gaps=("Of the archives many pages are decades old.", "Of most of the languages there is one paragraph."),
)


@recipe
def demo(data: str = "demo-data") -> Outputs:
    """Return the mixture of the demo, from the inputs that `examples.demo_data` makes."""
    documents = deduplicate(
        *texts(data),
        web(data),
        archives(data),
        method=MinHash(threshold=0.8),
        prefer=("source", "-length"),
        max_removed={"web": 0.6},
    )
    human_eval = Benchmark.jsonl(
        "HumanEval", f"{data}/benchmarks/HumanEval.jsonl.gz", question="prompt", answer="canonical_solution"
    )
    documents = decontaminate(documents, human_eval)
    train, valid = hold_out(documents, characters=50_000, per="source", near_duplicates=0.8)
    tokenizer = train_tokenizer(train, 4096)
    return Outputs(
        mixture(tokenize(train, tokenizer, by="source")),
        documents=documents,
        validation=tokenize(valid, tokenizer, by="source", name="tokenize valid"),
        batches=[(0, 64)],
        datasheet=SHEET,
    )


def texts(data: str) -> list[Dataset]:
    """Return what is text already: books, code, licences, languages and dialogues."""
    books = read_files(f"{data}/books", "**/*.md", source="books", licence="CC0-1.0")
    books = books.apply(NormalizeText(), name="books")

    code = read_parquet(f"{data}/code", source="code", columns={"text": "content", "key": "path", "licence": "license"})
    code = code.where(field("licence").isin(PERMISSIVE), reason="licence", name="code").apply(MaskPII(), name="code")

    licences = read_jsonl(f"{data}/licences", source="licences", columns={"key": "name", "licence": "licence"})

    # A paragraph in each of some 700 languages: without thresholds, Language drops nothing and writes what it sees.
    languages = read_jsonl(f"{data}/languages", source="languages", columns={"key": "name", "licence": "licence"})
    languages = languages.apply(Language(), name="languages")

    dialogues = read_files(f"{data}/dialogues", "*.yml", source="dialogues", licence="BSD-3-Clause")
    return [books, code, licences, languages, dialogues]


def web(data: str) -> Dataset:
    """Return the texts of web pages that are as prose is, in languages that we know, where nobody opted out."""
    return read_warc(f"{data}/crawl", source="web").apply(
        ExtractText(),
        RespectOptOut(),
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


def archives(data: str) -> Dataset:
    """Return the texts of archives of many writers, some damaged: what is readable is read, the rest accounted for."""
    pages = read_warc(f"{data}/archives", "*", source="archives", on_clash="place")
    return pages.apply(ExtractText(), NormalizeText(), MaskPII(), name="archives")


def mixture(cells: Cells) -> Mixture:
    """Return a long phase of all sources, and a short one of web pages and books."""
    return Mixture(
        cells,
        Phase("main", tokens=1_200_000, weights={"web": 3, "code": 3, "books": 2, "licences": 1}, others=1),
        Phase("cooldown", tokens=300_000, weights={"web": 1, "books": 1}, others=0),
        sequences=Chunks(256),
        repeats=AtMost(4, then="redistribute"),
        batch=16,
        seed=7,
    )
