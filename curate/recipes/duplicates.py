"""`deduplicate` for recipes, and how it and its relatives check which sources they are given."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from curate.configuration import ConfigurationError
from curate.recipes.graph import Dataset, Deduplicate
from curate.recipes.reference import Reference, references_of
from transforms.minhash import MinHash
from transforms.templates import TemplateRule


def deduplicate(
    *datasets: Dataset,
    method: MinHash | None = None,
    within: str | None = None,
    prefer: Sequence[str] = ("source",),
    max_removed: Mapping[str, float] | None = None,
    action: str = "drop",
    keep: int = 1,
    count: str | None = None,
    against: Reference | Sequence[Reference] | None = None,
    without_templates: TemplateRule | float | str | None = None,
    name: str | None = None,
) -> Dataset:
    """Return the documents of all `datasets` without duplicates.

    Equal texts collapse first; then, with a `method`, a document goes if its verified similarity with one that stays
    reaches the threshold. Each document dropped names such a survivor in the ledger. No two documents that stay and
    were compared reach the threshold; that holds for `keep=1` and the action "drop" alone.

    Args:
        datasets: what is compared, all with all; their order is the order of sources.
        method: near duplicates too, as `MinHash(threshold=.8)`; None collapses equal texts only. With
            `MinHash(measure="containment")` the smaller set counts: a text goes for one that holds it, or that it
            holds. Candidates come by Jaccard similarity all the same, so such pairs are found surely only where the
            texts are of like size: at containment .8 with probability .84 of equal sizes, .05 where one is twice as
            large, by the default bands (`transforms.similarity.jaccard_of_containment`, `MinHash.recall`).
        within: compare only documents that agree in this column; null is a group of its own.
        prefer: who stays, by "source" (order given), "length" (code points) or a column, "-" for larger first; then
            the digest of the text, then the id.
        max_removed: source → largest share of its documents that may go; more stops the run.
        action: "drop"; or "tag": all documents stay, and the column `duplicate` has for those that "drop" would take
            the reason, the survivor, their similarity and more as canonical JSON, as the ledger's evidence.
        keep: a document goes if so many that stay reach the threshold with it. So each one that goes has that many
            survivors, of which the ledger names the most similar; but of `keep=2` or more, some that stay are similar
            to each other. Equal texts collapse to one whatever this is.
        count: name of a column to add, as "duplicates": for each survivor how many documents went, or would go,
            because of it, equal texts included.
        against: a finished dataset (`reference(…)`), or several, that come before all documents: what equals or
            resembles one of theirs goes, and nothing of them comes out or goes.
        without_templates: shingles in more than this share of a source's documents do not count, neither for candidates
            nor for similarity: licence headers, navigation. A `TemplateRule` says more; a number is its share. They are
            counted exactly before anything is compared, and recorded (`curate templates`).
        name: of the stage.

    Raises:
        ConfigurationError: no dataset, a source that comes in twice or is not there, a share outside 0 … 1, an action
            that is none, `keep` below 1 or without a method, templates without a method, or a reference that lacks the
            column of `within`. A column that is there already is an error when the recipe is compiled, before any work.
    """
    sources = sources_once("deduplicate", datasets)
    shares = shares_of(max_removed, sources)
    if action not in ("drop", "tag") or keep < 1 or (keep > 1 and method is None):
        raise ConfigurationError(
            f'deduplicate(action={action!r}, keep={keep}): the action is "drop" or "tag", keep a number from 1 on, and '
            "more than 1 only with a method, as equal texts collapse to one"
        )
    frozen, templates = references_of(against), _template_rule(without_templates, method)
    if lacking := [each.name for each in frozen if within is not None and within not in each.columns]:
        raise ConfigurationError(f"deduplicate(within={within!r}): the reference {lacking[0]!r} has no such column")
    told = (tuple(prefer), shares, action, keep, count, frozen, templates)
    return Dataset(Deduplicate(tuple(datasets), method, within, *told), name or "deduplicate")


def _template_rule(given: TemplateRule | float | str | None, method: MinHash | None) -> TemplateRule | None:
    if given is None:
        return None
    if method is None:
        raise ConfigurationError("deduplicate(without_templates=…) needs a method: equal texts are compared whole")
    try:
        return given if isinstance(given, TemplateRule) else TemplateRule(given)
    except ValueError as error:
        raise ConfigurationError(f"deduplicate(without_templates=…): {error}") from None


def shares_of(max_removed: Mapping[str, float] | None, sources: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return what a recipe gave as `max_removed=`: pairs of a source and its largest share, as written.

    Raises:
        ConfigurationError: a source that is not among `sources`, or no share.
    """
    shares = tuple(sorted((source, str(share)) for source, share in (max_removed or {}).items()))
    for source, share in shares:
        if source not in sources or not 0 <= float(share) <= 1:
            raise ConfigurationError(
                f"max_removed={{{source!r}: {share}}}: give a share 0 … 1 of one of {sorted(sources)}"
            )
    return shares


def sources_once(what: str, datasets: Sequence[Dataset]) -> set[str]:
    """Return the names of the sources of `datasets`, which the operation `what` compares all with all.

    Raises:
        ConfigurationError: there is no dataset, something else is given, or a source comes in twice.
    """
    if not datasets:
        raise ConfigurationError(f"{what}() needs at least one dataset")
    if others := [each for each in datasets if not isinstance(each, Dataset)]:
        raise ConfigurationError(f"{what}() compares datasets, got {others[0]!r:.200}")
    named = [source for dataset in datasets for source in dataset.sources]
    if repeated := sorted({source for source in named if named.count(source) > 1}):
        raise ConfigurationError(
            f"{what}(): the source {repeated[0]!r} comes in twice, and its ids with it. Give each dataset once, "
            "or read the files under another source name"
        )
    return set(named)
