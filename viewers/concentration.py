"""How far documents come from few hosts, and how far their scores do, from counts and sums by host alone.

- Gini coefficient over hosts: 0 if all have as many documents, near 1 if one has nearly all:
  (2 Σ i xᵢ − (n + 1) Σ xᵢ) / (n Σ xᵢ), x ascending.
- Variance of a score explained by the host: 1 − (within / (N − H)) / (all / (N − 1)), within and all being sums of
  squared deviations from the mean of the host and of all N documents of H hosts (ε², Kelley 1935). A host of one text
  explains it wholly by chance; ε², unlike η² = 1 − within / all, takes that off, and is 0 if hosts say nothing.

Both are of the hosts whose counts are kept: all of them, or, where there are more than the statistics keep, those with
the lowest digests of their names, which is as good as drawn. The largest hosts are then told by the documents with the
lowest ids, for among hosts with low digests the largest may be missing.

Cost: the hosts that are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from viewers.intervals import MILLION, wilson
from viewers.loading import Report, StageView


@dataclass(frozen=True, slots=True)
class Largest:
    """A host with its documents, of `of`; `interval` is that of its share in millionths, None where it is exact."""

    host: str
    documents: int
    of: int
    interval: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Explained:
    """How much of the variance of `column` hosts explain: in millionths, None where nothing varies or repeats."""

    column: str
    documents: int
    hosts: int
    share: int | None


@dataclass(frozen=True, slots=True)
class Concentration:
    """One dataset: its hosts, with what is known of them; `is_exact` where all are kept."""

    stage: StageView
    is_exact: bool
    hosts: int
    documents: int
    gini: int
    gini_characters: int
    largest: tuple[Largest, ...]
    explained: tuple[Explained, ...]


def concentrations(report: Report) -> list[Concentration]:
    """Return those of the last stages in which documents have hosts, of each way through the recipe."""
    there = [stage for stage in report.stages if _hosts(stage) and stage.has_text and not _validates(stage)]
    read = {(entry["name"], entry["key"]) for stage in there for entry in stage.manifest["inputs"]}
    return [_of_stage(stage) for stage in there if (stage.name, stage.key) not in read]


def _validates(stage: StageView) -> bool:
    return stage.holds_out and stage.part == "valid"


def _hosts(stage: StageView) -> Mapping[str, Any]:
    """Return name → counts of the hosts that are kept."""
    most = stage.statistics.get("hosts", {}).get("most", {"least": {}})
    return {entry["name"]: entry for entry in most["least"].values() if entry["name"] and "documents" in entry}


def _of_stage(stage: StageView) -> Concentration:
    node, hosts = stage.statistics["hosts"], _hosts(stage)
    is_exact = len(node["most"]["least"]) < node["most"]["k"]
    documents = sum(entry["documents"] for entry in hosts.values())
    columns = sorted({column for entry in hosts.values() for column in entry.get("scores", {})})
    return Concentration(
        stage,
        is_exact,
        len(hosts),
        documents,
        gini([entry["documents"] for entry in hosts.values()]),
        gini([entry["characters"] for entry in hosts.values()]),
        _exact(hosts, documents) if is_exact else _drawn(node.get("drawn", {"least": {}})),
        tuple(explained(column, _sums(hosts.values(), column)) for column in columns),
    )


def gini(amounts: Sequence[int]) -> int:
    """Return the Gini coefficient in millionths; 0 of nothing."""
    total, count = sum(amounts), len(amounts)
    if not total:
        return 0
    weighted = sum(place * amount for place, amount in enumerate(sorted(amounts), 1))
    return (2 * weighted - (count + 1) * total) * MILLION // (count * total)


def _exact(hosts: Mapping[str, Any], of: int) -> tuple[Largest, ...]:
    ordered = sorted(hosts.items(), key=lambda item: (-item[1]["documents"], item[0]))
    return tuple(Largest(host, entry["documents"], of, None) for host, entry in ordered)


def _drawn(drawn: Mapping[str, Any]) -> tuple[Largest, ...]:
    counts: dict[str, int] = {}
    for entry in drawn["least"].values():
        counts[entry["name"]] = counts.get(entry["name"], 0) + entry["documents"]
    of = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Largest(host, count, of, wilson(count, of)) for host, count in ordered if count > 1)


_FINE: Final = 10**9
"""Parts of one in which sums of squares are counted: a host's share of the error is less than one of them."""


def _sums(hosts: Iterable[Mapping[str, Any]], column: str) -> list[tuple[int, int, int]]:
    told = [entry.get("scores", {}).get(column) for entry in hosts]
    return [(sums["count"], sums["sum_of_scores"], sums["sum_of_squares"]) for sums in told if sums]


def explained(column: str, hosts: Sequence[tuple[int, int, int]]) -> Explained:
    """Return how much of the variance hosts explain: of each the count, sum and sum of squares of its scores."""
    count, total, squares = (sum(host[place] for host in hosts) for place in range(3))
    whole = squares * _FINE - total * total * _FINE // count if count else 0
    if whole <= 0 or count <= len(hosts) or len(hosts) < 2:
        return Explained(column, count, len(hosts), None)
    within = squares * _FINE - sum(host[1] * host[1] * _FINE // host[0] for host in hosts)
    share = MILLION - MILLION * within * (count - 1) // (whole * (count - len(hosts)))
    return Explained(column, count, len(hosts), max(share, 0))
