"""Twelve languages with bounds fitted per language (after FineWeb-2, Penedo et al. 2025, arXiv:2506.20920), evened out.

    curate run docs/recipes/multilingual.py --store STORE --set root=/data/pages --set benchmarks=/data/benchmarks

`root` holds JSON lines with the text of pages ("text", "url"). What is too short, too long or too repetitive is not
the same number in all languages: the bounds of Gopher's, C4's and FineWeb's rules are fitted so that in each language
as many documents pass a rule as pass it in English, for which the papers chose them. Duplicates are looked for within
languages. The mixture draws by tokens to the power of .3 (Conneau et al. 2020, section 3.1), so small languages are
seen more often.
"""

from pathlib import Path

from curate import (
    Outputs,
    decontaminate,
    deduplicate,
    fit_thresholds,
    hold_out,
    read_jsonl,
    recipe,
    tokenize,
    train_tokenizer,
)
from mixtures import AtMost, ByTokens, Chunks, Mixture, Phase
from transforms import (
    FineWebQuality,
    FittedFilter,
    GopherQuality,
    GopherRepetition,
    Language,
    MaskPII,
    MinHash,
    NormalizeText,
    known_benchmark,
)

LANGUAGES = ("ar", "de", "en", "es", "fr", "hi", "it", "ja", "pl", "pt", "ru", "zh")
RULES = (GopherRepetition(), GopherQuality(min_stop_words=None), FineWebQuality())


@recipe
def multilingual(
    root: str,
    benchmarks: str,
    confidence: float = 0.5,
    least: int = 1000,
    vocabulary: int = 128_000,
    held_out: int = 2_000_000,
    tokens: float = 1e11,
    length: int = 4096,
    batch: int = 256,
) -> Outputs:
    """Return documents in twelve languages, and batches that draw from all of them."""
    web = read_jsonl(root, source="web", columns={"url": "url"}).apply(
        NormalizeText(), Language(dict.fromkeys(LANGUAGES, confidence)), name="languages"
    )
    web = deduplicate(web.keep(), method=MinHash(threshold=0.8), within="language", count="copies").keep()
    good = web
    for rules in RULES:
        bounds = fit_thresholds(good, rules, per="language", like="en", least=least, name=f"fit {type(rules).__name__}")
        good = good.apply(FittedFilter(rules, bounds, per="language"), name=type(rules).__name__).keep()
    items = [known_benchmark(path.name.partition(".")[0], path) for path in sorted(Path(benchmarks).glob("*"))]
    clean = decontaminate(good.apply(MaskPII(), name="masked"), *items)
    train, valid = hold_out(clean, characters=held_out, per="language", near_duplicates=0.8)
    tokenizer = train_tokenizer(train, vocabulary)
    mixture = Mixture(
        tokenize(train, tokenizer, by="language"),
        Phase("main", tokens=tokens, weights=ByTokens(temperature="10/3")),
        sequences=Chunks(length),
        repeats=AtMost(4, then="redistribute"),
        rare="round up",
        batch=batch,
    )
    return Outputs(
        mixture, documents=clean, validation=tokenize(valid, tokenizer, by="language", name="tokenize valid")
    )
