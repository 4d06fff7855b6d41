"""FineWeb-like: English Common Crawl, deduplicated per dump (Penedo et al. 2024, arXiv:2406.17557), to batches.

    curate run docs/recipes/fineweb.py --store STORE --set root=/data/crawl --set benchmarks=/data/benchmarks \
        --set dumps=CC-MAIN-2024-10,CC-MAIN-2024-18

`root` holds a folder of WARC files per dump. Each dump has stages of its own up to its unique documents, so adding
one reruns none of the others' reading, extraction and filtering. `benchmarks` holds files called after what they are,
as gsm8k.jsonl (`curate contamination --known` names those that are known).
"""

from pathlib import Path

from curate import (
    Datasheet,
    Outputs,
    decontaminate,
    deduplicate,
    hold_out,
    read_warc,
    recipe,
    tokenize,
    train_tokenizer,
)
from mixtures import AtMost, ByTokens, Chunks, Mixture, Phase
from transforms import (
    ExtractText,
    Language,
    MaskPII,
    MinHash,
    NormalizeText,
    RespectOptOut,
    URLDenyList,
    URLWords,
    datatrove_lists,
    known_benchmark,
)
from transforms import fineweb as filters


@recipe
def fineweb(
    root: str,
    dumps: str,
    benchmarks: str,
    extractor: str = "blocks",
    vocabulary: int = 50_000,
    held_out: int = 20_000_000,
    tokens: float = 1e11,
    length: int = 4096,
    batch: int = 256,
) -> Outputs:
    """Return one deduplicated dataset per dump, and batches of all of them."""

    def dump(name: str):
        pages = read_warc(f"{root}/{name}", "**/*.warc.gz", source=name).apply(
            URLDenyList(*datatrove_lists()),
            URLWords.of_datatrove(),
            ExtractText(extractor),
            RespectOptOut(),
            NormalizeText(),
            Language({"en": 0.65}),
            *filters(),
            name=f"filter {name}",
        )
        unique = deduplicate(pages, method=MinHash.fineweb(), name=f"deduplicate {name}")
        return unique.apply(MaskPII.only("email", "ip"), name=name)

    made = {name: dump(name) for name in dumps.split(",")}
    together = deduplicate(*made.values(), within="source", name="all dumps")  # unique already: it joins them
    items = [known_benchmark(path.name.partition(".")[0], path) for path in sorted(Path(benchmarks).glob("*"))]
    train, valid = hold_out(decontaminate(together, *items), characters=held_out, near_duplicates=0.8)
    tokenizer = train_tokenizer(train, vocabulary)
    mixture = Mixture(
        tokenize(train, tokenizer, by="source"),
        Phase("main", tokens=tokens, weights=ByTokens()),
        sequences=Chunks(length),
        repeats=AtMost(4, then="redistribute"),
        batch=batch,
    )
    return Outputs(
        mixture,
        validation=tokenize(valid, tokenizer, name="tokenize valid"),
        datasheet=Datasheet(purpose="English web text for language models, as FineWeb has it."),
        **made,
    )
