"""Signatures alone, from Parquet: 120 MinHash values (datatrove 112, its default) of the 5-grams of each text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peer import Clock, arguments, batches, shingles

Sign = Callable[[list[str]], object]


def rensa() -> tuple[Sign, tuple[str, ...]]:
    """Return its bulk digests."""
    from rensa import RMinHash

    return lambda texts: RMinHash.digest_matrix_from_token_sets(list(map(shingles, texts)), 120, 1), ("rensa",)


def datasketch() -> tuple[Sign, tuple[str, ...]]:
    """Return its bulk MinHash, xxh32."""
    import xxhash
    from datasketch import MinHash

    def sign(texts: list[str]) -> object:
        return MinHash.bulk(map(shingles, texts), num_perm=120, hashfunc=xxhash.xxh32_intdigest)

    return sign, ("datasketch", "xxhash", "numpy")


def datatrove() -> tuple[Sign, tuple[str, ...]]:
    """Return its first stage without the files."""
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature

    step: Any = MinhashDedupSignature("signatures", MinhashConfig())
    step.get_signature(step.get_shingles("Load what it needs to split this into words."))

    def sign(texts: list[str]) -> object:
        return [step.get_signature(grams) for text in texts if (grams := step.get_shingles(text)).size]

    return sign, ("datatrove", "spacy", "xxhash")


def text_dedup() -> tuple[Sign, tuple[str, ...]]:
    """Return its embedding of one text after the other."""
    import numpy as np
    from text_dedup.config.algorithms.minhash import MinHashAlgorithmConfig

    np.seterr(over="ignore")
    config = MinHashAlgorithmConfig(
        algorithm_name="minhash", text_column="text", num_perm=120, bands=20, rows=6, ngram_size=5, threshold=0.8
    )
    embed = config.get_embed_func()
    return lambda texts: [embed([text], [0]) for text in texts], ("text-dedup", "numpy")


TOOLS = {"rensa": rensa, "datasketch": datasketch, "datatrove": datatrove, "text-dedup": text_dedup}


def main() -> None:
    """Sign every text of the corpus."""
    corpus, folder, variant = arguments()
    sign, packages = TOOLS[variant]()
    clock = Clock()
    for batch in batches(corpus):
        sign(batch.column("text").to_pylist())
    clock.stop().write(folder, [], "signatures", *packages)


if __name__ == "__main__":
    main()
