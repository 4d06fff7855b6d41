"""What a corpus repeats, as recipes say it: lines and paragraphs, spans, URLs, and what a reference has already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from curate.configuration import ConfigurationError
from curate.recipes.duplicates import shares_of, sources_once
from curate.recipes.graph import CutRepeats, Dataset, DropEqual
from curate.recipes.reference import Reference, against_of, references_of
from transforms.order_key import order_by
from transforms.parts import PartUnit, RepeatedParts
from transforms.substrings import RepeatedSpans
from transforms.urls import TRACKING, URLForm


def deduplicate_parts(
    *datasets: Dataset,
    unit: PartUnit = "paragraph",
    least: int = 20,
    more_than: int | None = None,
    prefer: Sequence[str] = ("source",),
    against: Reference | Sequence[Reference] | None = None,
    max_removed: Mapping[str, float] | None = None,
    name: str | None = None,
) -> Dataset:
    """Return the documents of all `datasets` without the lines or paragraphs that they repeat.

    What is cut is in the ledger as an edit; a document of which nothing but white space is left is dropped. Without
    `more_than` each line that is cut stays once, in the first document that has it.

    Args:
        datasets: what is compared, all with all; their order is the order of sources.
        unit: "line", or "paragraph": lines between blank lines.
        least: code points that a part has at least; shorter ones always stay.
        more_than: drop every occurrence of what is seen more often than that, the first too, instead.
        prefer: whose lines stay, as in `deduplicate`.
        against: a finished dataset (`reference(…)`), or several, that come before all documents: what these have goes.
        max_removed: source → largest share of its characters that may go; more stops the run.
        name: of the stage.

    Raises:
        ConfigurationError: no dataset, a source that comes in twice, or a number or unit that does not fit.
    """
    try:
        what = RepeatedParts(unit, least, more_than)
    except ValueError as error:
        raise ConfigurationError(f"deduplicate_parts(): {error}") from None
    given = datasets, prefer, against, max_removed
    return _cut("deduplicate_parts", given, what, name or f"repeated {unit}s")


def deduplicate_spans(
    *datasets: Dataset,
    words: int = 50,
    prefer: Sequence[str] = ("source",),
    against: Reference | Sequence[Reference] | None = None,
    max_removed: Mapping[str, float] | None = None,
    name: str | None = None,
) -> Dataset:
    """Return the documents of all `datasets` without the spans of at least `words` words that they repeat.

    A span lies in one document and begins and ends with words; its bytes are equal, white space and punctuation too.
    The first occurrence of each stays. Further arguments and the ledger as in `deduplicate_parts`.

    Raises:
        ConfigurationError: no dataset, a source that comes in twice, or a number that does not fit.
    """
    try:
        what = RepeatedSpans(words, min(20, max(1, words // 2)))
    except ValueError as error:
        raise ConfigurationError(f"deduplicate_spans(): {error}") from None
    given = datasets, prefer, against, max_removed
    return _cut("deduplicate_spans", given, what, name or "repeated spans")


def deduplicate_urls(
    *datasets: Dataset,
    column: str = "url",
    without: Sequence[str] = TRACKING,
    prefer: Sequence[str] = ("source",),
    against: Reference | Sequence[Reference] | None = None,
    max_removed: Mapping[str, float] | None = None,
    name: str | None = None,
) -> Dataset:
    """Return the documents of all `datasets`, of those with one URL the first; the ledger names it for the others.

    URLs are equal if their normal forms are (`transforms.urls`). Documents without a URL stay.

    Args:
        datasets: what is compared, all with all; their order is the order of sources.
        column: of the URLs.
        without: parameters that do not count, lower case, "*" at the end for any ending.
        prefer: who stays, as in `deduplicate`.
        against: a finished dataset, or several, that come before all documents.
        max_removed: source → largest share of its documents that may go; more stops the run.
        name: of the stage.

    Raises:
        ConfigurationError: no dataset, a source that comes in twice, or a reference without that column.
    """
    form = URLForm(tuple(without))
    given = datasets, prefer, against, max_removed
    return _equal("deduplicate_urls", given, column, form, name or "deduplicate URLs")


def deduplicate_against(
    *datasets: Dataset,
    against: Reference | Sequence[Reference],
    prefer: Sequence[str] = ("source",),
    max_removed: Mapping[str, float] | None = None,
    name: str | None = None,
) -> Dataset:
    """Return the documents of all `datasets` whose texts `against` does not have, each text once.

    The ledger names the survivor, and says if it is one of the reference. Empty texts stay.

    Raises:
        ConfigurationError: no dataset, or a source that comes in twice.
    """
    given, names = (datasets, prefer, against, max_removed), [each.name for each in references_of(against)]
    return _equal("deduplicate_against", given, "text", None, name or f"against {' '.join(names)}")


Given = tuple[Sequence[Dataset], Sequence[str], Reference | Sequence[Reference] | None, Mapping[str, float] | None]
"""What all of these are given: datasets, `prefer`, `against` and `max_removed`."""


def _cut(called: str, given: Given, what: RepeatedParts | RepeatedSpans, name: str) -> Dataset:
    datasets, prefer, against, max_removed = given
    shares = shares_of(max_removed, sources_once(called, datasets))
    return Dataset(CutRepeats(tuple(datasets), what, _order(called, prefer), against_of(against), shares), name)


def _equal(called: str, given: Given, column: str, form: URLForm | None, name: str) -> Dataset:
    datasets, prefer, against, max_removed = given
    shares = shares_of(max_removed, sources_once(called, datasets))
    if lacking := [each for each in references_of(against) if column not in each.columns]:
        raise ConfigurationError(
            f"{called}(against={lacking[0].name!r}): it has no column {column!r}, only {lacking[0].columns}"
        )
    return Dataset(DropEqual(tuple(datasets), column, form, _order(called, prefer), against_of(against), shares), name)


def _order(called: str, prefer: Sequence[str]) -> tuple[str, ...]:
    try:
        order_by(prefer)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{called}(): {error}") from None
    return tuple(prefer)
