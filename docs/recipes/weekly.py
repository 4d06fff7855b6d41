"""A crawl that grows by a week at a time: what earlier weeks have goes, and their results stay as they are.

    curate run docs/recipes/weekly.py --store STORE --set root=/data/w1 --set week=w1 --set benchmarks=/data/benchmarks
    curate run docs/recipes/weekly.py --store STORE --set root=/data/w2 --set week=w2 --set benchmarks=… \
        --set earlier=STORE=w1 --set tokenizer=STORE/train-tokenizer-KEY/tokenizer.json

Texts of the new week that equal or resemble one of the earlier weeks go; the ledger names it. Earlier weeks are read
from their finished datasets and never written. The tokenizer is trained once, with the first week. What a model was
already trained on stays as it was drawn, and what follows draws from the new caches, too:

    plan = Plan.load(…).continue_from(step, mixture, {**earlier_caches, **new_caches}, earlier_validation)

`root` holds WET files, as Common Crawl publishes them: text that was extracted already.
"""

from pathlib import Path

from curate import (
    Outputs,
    decontaminate,
    deduplicate,
    deduplicate_urls,
    hold_out,
    read_wet,
    recipe,
    reference,
    tokenize,
    train_tokenizer,
)
from mixtures import AtMost, ByTokens, Chunks, Mixture, Phase
from transforms import Language, MaskPII, MinHash, NormalizeText, Tokenizer, known_benchmark
from transforms import refinedweb as filters

END = "<|endoftext|>"


@recipe
def weekly(
    root: str,
    week: str,
    benchmarks: str,
    earlier: str = "",
    tokenizer: str = "",
    vocabulary: int = 50_000,
    held_out: int = 2_000_000,
    tokens: float = 1e9,
    length: int = 4096,
    batch: int = 256,
) -> Outputs:
    """Return what is new in a week, under its name, and batches of it."""
    against = [reference(*place.rsplit("=", 1)) for place in earlier.split(",") if place]
    pages = deduplicate_urls(read_wet(root, source=week).keep(), name=f"URLs {week}")
    pages = pages.apply(NormalizeText(), Language({"en": 0.65}), *filters(), MaskPII(), name=f"pages {week}")
    new = deduplicate(pages, method=MinHash(threshold=0.8), against=against, name=f"deduplicate {week}")
    items = [known_benchmark(path.name.partition(".")[0], path) for path in sorted(Path(benchmarks).glob("*"))]
    documents = decontaminate(new, *items, name=week)
    train, valid = hold_out(documents, characters=held_out, names=(f"train {week}", f"valid {week}"))
    ids = Tokenizer(Path(tokenizer), eos=END) if tokenizer else train_tokenizer(train, vocabulary)
    mixture = Mixture(
        tokenize(train, ids, by="source", name=f"tokenize {week}"),
        Phase(week, tokens=tokens, weights=ByTokens()),
        sequences=Chunks(length),
        repeats=AtMost(4, then="redistribute"),
        batch=batch,
    )
    return Outputs(mixture, documents=documents, validation=tokenize(valid, ids, name=f"tokenize valid {week}"))
