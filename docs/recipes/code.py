"""Code by repository: permissive files, filtered and deduplicated, joined in path order; partly fill-in-the-middle.

    curate run docs/recipes/code.py --store STORE --set root=/data/stack --set benchmarks=/data/benchmarks

`root` holds Parquet files with one source file a row. A document is a repository: its files in the order of their
paths, so that what a file uses tends to stand before it. Half of the documents are read with a middle to fill in
(Bavarian et al. 2022, arXiv:2207.14255). `benchmarks` holds humaneval.jsonl, mbpp.jsonl …
"""

from pathlib import Path

from curate import (
    Column,
    Outputs,
    decontaminate,
    deduplicate,
    field,
    hold_out,
    read_parquet,
    recipe,
    tokenize,
    train_tokenizer,
)
from mixtures import AtMost, Chunks, FillInTheMiddle, Mixture, Phase
from transforms import MaskPII, MinHash, NormalizeText, known_benchmark
from transforms import code as filters

PERMISSIVE = ("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unlicense")
SPECIAL = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")  # in this order the ids 0 to 3


@recipe
def code(
    root: str,
    benchmarks: str,
    vocabulary: int = 50_000,
    held_out: int = 20_000_000,
    tokens: float = 1e11,
    length: int = 8192,
    batch: int = 128,
) -> Outputs:
    """Return repositories with a permissive licence, of files that equal each other the one with more stars."""
    files = read_parquet(
        root,
        source="code",
        columns={
            "text": "content",
            "key": "blob_id",
            "licence": "license_type",
            "repo": "repo_name",
            "path": "path",
            "stars": Column("stars", "int64"),
        },
    )
    files = files.where(field("licence").isin(PERMISSIVE), reason="licence")
    files = files.apply(NormalizeText(), *filters(), MaskPII(), name="files")
    files = deduplicate(files, method=MinHash(threshold=0.7), prefer=("-stars", "-length"), max_removed={"code": 0.7})
    items = [known_benchmark(path.name.partition(".")[0], path) for path in sorted(Path(benchmarks).glob("*"))]
    repositories = decontaminate(files, *items).group("repo", order="path", name="repositories")
    train, valid = hold_out(repositories, characters=held_out, near_duplicates=0.7)
    tokenizer = train_tokenizer(train, vocabulary, special=SPECIAL)
    mixture = Mixture(
        tokenize(train, tokenizer, by="source"),
        Phase("main", tokens=tokens, weights={"code": 1}),
        sequences=Chunks(length),
        repeats=AtMost(4, then="redistribute"),
        batch=batch,
        views={"code": FillInTheMiddle(*(SPECIAL.index(f"<|fim_{part}|>") for part in ("prefix", "suffix", "middle")))},
    )
    return Outputs(mixture, repositories=repositories, validation=tokenize(valid, tokenizer, name="tokenize valid"))
