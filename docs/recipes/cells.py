"""Cells: 40 topics × 5 levels of quality, each a component, weighted from a table in two phases, with a cap on repeats.

    curate run docs/recipes/cells.py --store STORE --set web=/data/pages --set good=/data/textbooks \
        --set benchmarks=/data/benchmarks
    curate card STORE                              which topics there are, and what the classifier is worth
    curate run … --set main=main.csv --set cooldown=cooldown.csv

The first run weights cells by their tokens and a factor per level. With tables ("component", "weight": a row for each
cell that is to be read, as topic=whale-ship-boat/quality_level=4) only the plan is made anew. `web` holds JSON lines
with texts and URLs, `good` .txt files of the kind that is wanted more of (Wettig et al. 2025, arXiv:2502.10341, weight
such cells).
"""

from pathlib import Path

from curate import (
    Outputs,
    decontaminate,
    deduplicate,
    fit_topics,
    grade,
    hold_out,
    read_files,
    read_jsonl,
    recipe,
    tokenize,
    train_classifier,
    train_tokenizer,
)
from mixtures import AtMost, ByColumn, Chunks, FromTable, Mixture, Phase
from transforms import AssignTopic, Language, MaskPII, MinHash, NormalizeText, known_benchmark
from transforms import fineweb as filters


@recipe
def cells(
    web: str,
    good: str,
    benchmarks: str,
    main: str = "",
    cooldown: str = "",
    topics: int = 40,
    levels: int = 5,
    vocabulary: int = 128_000,
    held_out: int = 20_000_000,
    tokens: float = 9e10,
    tokens_of_cooldown: float = 1e10,
    length: int = 4096,
    batch: int = 256,
) -> Outputs:
    """Return graded documents by topic, and batches of two phases: broad, then of the best."""
    pages = read_jsonl(web, source="web", columns={"url": "url"}, max_damaged=0.01).apply(
        NormalizeText(), Language({"en": 0.65}), *filters(), MaskPII(), name="pages"
    )
    pages = deduplicate(pages, method=MinHash(threshold=0.8), max_removed={"web": 0.7})
    items = [known_benchmark(path.name.partition(".")[0], path) for path in sorted(Path(benchmarks).glob("*"))]
    pages = decontaminate(pages, *items).keep()
    books = read_files(good, source="good").apply(NormalizeText(), name="good")
    quality = train_classifier(books, pages, leave_out=None)
    graded = grade(pages, quality, levels=levels, of="characters").keep()
    themes = fit_topics(graded, k=topics)
    train, valid = hold_out(graded.apply(AssignTopic(themes), name="topics"), characters=held_out, near_duplicates=0.8)
    tokenizer = train_tokenizer(train, vocabulary)
    broad = FromTable(Path(main), others=0) if main else ByColumn(quality_level={0: 0, levels - 1: 2})
    best = FromTable(Path(cooldown), others=0) if cooldown else ByColumn(quality_level={0: 0, 1: 0, levels - 1: 4})
    mixture = Mixture(
        tokenize(train, tokenizer, by=("topic", "quality_level")),
        Phase("main", tokens=tokens, weights=broad),
        Phase("cooldown", tokens=tokens_of_cooldown, weights=best),
        sequences=Chunks(length),
        repeats=AtMost(4, then="redistribute"),
        rare="round up",
        batch=batch,
    )
    return Outputs(
        mixture,
        quality=quality,
        topics=themes,
        documents=train,
        validation=tokenize(valid, tokenizer, name="tokenize valid"),
    )
