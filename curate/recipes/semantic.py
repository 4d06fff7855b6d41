"""Semantic deduplication, as recipes say it: documents that mean the same by the vectors of an embedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from curate.configuration import ConfigurationError
from curate.recipes.duplicates import shares_of, sources_once
from curate.recipes.graph import Dataset, DropAlike
from curate.recipes.reference import Reference, against_of
from transforms.embedding import Embedder, HashedTfidf
from transforms.exact_numbers import exact
from transforms.order_key import order_by
from transforms.semantic import SCALE

MOST_CLUSTERS = 65_536


def deduplicate_semantic(
    *datasets: Dataset,
    embedder: Embedder | None = None,
    similarity: Fraction | float | str = Fraction(9, 10),
    clusters: int | None = None,
    cap: int = 8192,
    prefer: Sequence[str] = ("source",),
    against: Reference | Sequence[Reference] | None = None,
    max_removed: Mapping[str, float] | None = None,
    name: str | None = None,
) -> Dataset:
    """Return the documents of all `datasets` without those whose vector is that of one that stays, or nearly.

    As SemDeDup (Abbas et al. 2023): documents are embedded and clustered, and within a cluster a document goes if its
    cosine with one that stays reaches `similarity`. The ledger names that survivor and the cosine. Documents of unlike
    clusters are never compared, and those without words stay. Put it after `deduplicate`, which is exact about words.

    Args:
        datasets: what is compared, all with all; their order is the order of sources.
        embedder: what makes vectors of texts (`transforms.Embedder`); None is `HashedTfidf()`, whose words weigh by
            how rare they are in these documents. It finds the same words in another order, not other words for the
            same: for that give a model of your own.
        similarity: cosine from which on two documents mean the same, four decimals at most.
        clusters: of documents, by k-means on a sample; None is one for every 4,096 documents, 256 at most. More make
            it faster and miss more pairs.
        cap: documents that are compared all with all; a larger cluster is divided, and the pairs that this gives up
            are counted.
        prefer: who stays, as in `deduplicate`.
        against: a finished dataset (`reference(…)`), or several, that come before all documents, which go for theirs.
        max_removed: source → largest share of its documents that may go; more stops the run.
        name: of the stage.

    Raises:
        ConfigurationError: no dataset, a source that comes in twice, no embedder, or a number out of its range.
    """
    shares = shares_of(max_removed, sources_once("deduplicate_semantic", datasets))
    chosen = HashedTfidf() if embedder is None else embedder
    if isinstance(chosen, type) or not isinstance(chosen, Embedder):
        raise ConfigurationError(
            f"deduplicate_semantic(embedder={chosen!r}): an embedder has version, libraries, dimension and "
            "embed(texts), see transforms/embedding.py. Did you mean an instance, as HashedTfidf()?"
        )
    try:
        order_by(prefer)
        threshold = exact(similarity)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"deduplicate_semantic(): {error}") from None
    if not 0 < threshold <= 1 or SCALE % threshold.denominator:
        raise ConfigurationError(f"deduplicate_semantic(similarity={similarity}): give a cosine like 0.9, at most 1")
    if clusters is not None and not 0 < clusters <= MOST_CLUSTERS:
        raise ConfigurationError(f"deduplicate_semantic(clusters={clusters}): give 1 to {MOST_CLUSTERS:,}, or None")
    if not 2 <= cap <= MOST_CLUSTERS:
        raise ConfigurationError(f"deduplicate_semantic(cap={cap}): give 2 to {MOST_CLUSTERS:,} documents")
    held = (tuple(prefer), against_of(against), shares)
    operation = DropAlike(tuple(datasets), chosen, threshold, clusters, cap, *held)
    return Dataset(operation, name or "deduplicate semantically")
