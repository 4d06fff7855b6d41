"""What keeps evaluation honest, for recipes: items of benchmarks go, and texts are held out of training."""

from __future__ import annotations

from typing import Any

from curate.configuration import ConfigurationError
from curate.recipes.graph import Dataset, HoldOut
from transforms.benchmark_items import Benchmark
from transforms.contamination import Decontaminate
from transforms.minhash import MinHash


def decontaminate(dataset: Dataset, *benchmarks: Benchmark, name: str = "decontaminate", **options: Any) -> Dataset:
    """Return `dataset` without documents that hold items of `benchmarks`; `options` are those of `Decontaminate`."""
    return dataset.apply(Decontaminate(benchmarks, **options), name=name)


def hold_out(
    dataset: Dataset,
    *,
    characters: int | None = None,
    documents: int | None = None,
    per: str | None = None,
    near_duplicates: float | MinHash | None = 0.8,
    names: tuple[str, str] = ("train", "valid"),
) -> tuple[Dataset, Dataset]:
    """Return the training part and the validation part of `dataset`.

    Held-out texts are chosen by a keyed digest of the text. Everything with a held-out text, or with a verified near
    duplicate of one, leaves training with that reason in the ledger.

    Args:
        dataset: what is split.
        characters: code points to hold out, of each stratum; or
        documents: documents to hold out, of each stratum.
        per: column whose values are the strata; None is one stratum.
        near_duplicates: Jaccard similarity from which on a training text is too near, or a `MinHash`; None looks at
            equal texts only.
        names: of the two datasets.

    Raises:
        ConfigurationError: not exactly one of `characters` and `documents`, none at all to hold out, or a method that
            measures something else than Jaccard similarity.
    """
    if (characters is None) == (documents is None) or (characters or documents or 0) < 1:
        raise ConfigurationError("hold_out() takes characters=… or documents=…, one of them, at least 1")
    method = near_duplicates
    if method is not None and not isinstance(method, MinHash):
        method = MinHash(threshold=method)
    if method is not None and method.measure != "jaccard":
        raise ConfigurationError(f"hold_out() compares by Jaccard similarity: leave measure={method.measure!r} out")
    train, valid = (
        Dataset(HoldOut((dataset,), characters, documents, per, method, part), name)
        for part, name in zip(("train", "valid"), names, strict=True)
    )
    return train, valid
