"""What each filter removed of documents of each kind, from the counts of `curate.accounting.who`.

Small groups: of an attribute, groups of which fewer than `SMALL` documents came into the step are one group, "others",
as are values beyond those that are counted. An attribute with one group alone says nothing, and is left out.

Host size classes are of the hosts whose counts are kept: all, or, where there are more than the statistics keep, those
with the lowest digest of their name, which is as good as drawn.

Cost: the counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from curate.accounting.statistics import LENGTH_BINS
from curate.accounting.who import MONTH
from viewers.intervals import MILLION, wilson
from viewers.loading import Report, StageView
from viewers.numbers import grouped

SMALL: Final = 50
"""Documents below which a group is not told alone: its interval would be wider than 25 percentage points."""

HOST_SIZES: Final = (1, 2, 10, 100, 1000)
"""Least documents of a host of each size class."""

HOST_SIZE: Final = "host size"


@dataclass(frozen=True, slots=True)
class Lot:
    """Documents of one kind: `lost` of `came` were dropped where `all_lost` of `all_came` were of all documents."""

    value: str
    came: int
    lost: int
    all_came: int
    all_lost: int

    @property
    def ratio(self) -> tuple[int, int]:
        """The rate over the rate of all, as a fraction."""
        return self.lost * self.all_came, self.came * self.all_lost

    @property
    def interval(self) -> tuple[int, int]:
        """The ends of the interval of the ratio, in millionths; the rate of all is taken as it is."""
        low, high = wilson(self.lost, self.came)
        return low * self.all_came // self.all_lost, -(-high * self.all_came // self.all_lost)

    @property
    def unequal(self) -> int:
        """How many times the rate is higher or lower, by the nearer end, in millionths; one million where it is not."""
        low, high = self.interval
        return max(low, MILLION * MILLION // max(high, 1), MILLION)


@dataclass(frozen=True, slots=True)
class Attribute:
    """The lots of one attribute, the most unequal first; `is_sampled` where they are those of some hosts."""

    name: str
    lots: tuple[Lot, ...]
    is_sampled: bool = False


@dataclass(frozen=True, slots=True)
class Removal:
    """One filter in one stage: how many documents came in, how many it dropped, and of whom."""

    stage: StageView
    filter: str
    came: int
    lost: int
    attributes: tuple[Attribute, ...]

    @property
    def title(self) -> str:
        """Name of the filter and of its stage."""
        return self.filter if self.filter == self.stage.name else f"{self.filter} in {self.stage.name}"

    @property
    def unequal(self) -> int:
        """The most unequal of its lots."""
        return max((lot.unequal for attribute in self.attributes for lot in attribute.lots), default=MILLION)


def removals(report: Report) -> list[Removal]:
    """Return the filters that dropped something, the most unequal first; what is held out is not lost."""
    found = [removal for stage in report.stages if not stage.holds_out for removal in _of_stage(stage)]
    return sorted(found, key=lambda removal: -removal.unequal)


def _of_stage(stage: StageView) -> Iterator[Removal]:
    who = stage.statistics.get("who", {})
    steps = stage.statistics.get("steps", {})
    for index in sorted(steps, key=int):
        flows = steps[index]["sources"].values()
        came = sum(flow.get("documents_in", 0) for flow in flows)
        lost = came - sum(flow.get("documents_out", 0) for flow in flows)
        if lost:
            attributes = tuple(_attributes(who, index, came, lost))
            yield Removal(stage, steps[index]["name"], came, lost, attributes)


def _attributes(who: Mapping[str, Any], index: str, came: int, lost: int) -> Iterator[Attribute]:
    node = who.get("steps", {}).get(index, {})
    for name, found in [*sorted(node.get("by", {}).items()), *sorted(node.get("columns", {}).items())]:
        if name == MONTH:
            continue  # more groups than tell anything: they are in the distributions
        counts = {entry["name"]: _pair(entry) for entry in found["values"]["least"].values()}
        if name == "length":
            counts = {length_name(edge): pair for edge, pair in counts.items()}
        without = _pair(found.get("without", {}))
        beyond = [came - without[0], lost - without[1]]
        for pair in counts.values():
            beyond = [beyond[0] - pair[0], beyond[1] - pair[1]]
        if without[0]:
            counts[f"no {name}"] = without
        lots = _lots(name, counts, (beyond[0], beyond[1]), (came, lost))
        if len(lots) > 1:
            yield Attribute(name, lots)
    hosts = who.get("hosts")
    if hosts and (lots := _host_sizes(hosts, index)):
        yield Attribute(HOST_SIZE, lots, len(hosts["least"]) >= hosts["k"])


def dropped_by(report: Report, attribute: str) -> dict[str, int]:
    """Return value of an attribute → documents that filters dropped, as they came into the step; held out is none.

    Those without the attribute have the value "".
    """
    sums: dict[str, int] = {}
    for stage in report.stages:
        steps = {} if stage.holds_out else stage.statistics.get("who", {}).get("steps", {})
        for node in steps.values():
            found = node.get("by", {}).get(attribute, {})
            for entry in found.get("values", {"least": {}})["least"].values():
                sums[entry["name"]] = sums.get(entry["name"], 0) + entry.get("dropped", 0)
            if lost := found.get("without", {}).get("dropped", 0):
                sums[""] = sums.get("", 0) + lost
    return sums


def lost_in(report: Report) -> int:
    """Return how many documents steps dropped, what is held out apart."""
    stages = [stage for stage in report.stages if not stage.holds_out]
    steps = [step for stage in stages for step in stage.statistics.get("steps", {}).values()]
    flows = [flow for step in steps for flow in step["sources"].values()]
    return sum(flow.get("documents_in", 0) - flow.get("documents_out", 0) for flow in flows)


def _pair(counts: Mapping[str, int]) -> tuple[int, int]:
    return counts.get("documents", 0), counts.get("dropped", 0)


def _lots(
    name: str, counts: Mapping[str, tuple[int, int]], beyond: tuple[int, int], total: tuple[int, int]
) -> tuple[Lot, ...]:
    told = [Lot(value, *pair, *total) for value, pair in counts.items() if pair[0] >= SMALL]
    small = [pair for pair in counts.values() if pair[0] < SMALL]
    rest = beyond[0] + sum(pair[0] for pair in small), beyond[1] + sum(pair[1] for pair in small)
    if rest[0]:
        how_many = "" if beyond[0] else f"{grouped(len(small))} "
        told.append(Lot(f"{how_many}others by {name}", *rest, *total))
    return ordered(told)


def ordered(lots: Iterable[Lot]) -> tuple[Lot, ...]:
    """Return `lots`, the most unequal first, then the largest."""
    return tuple(sorted(lots, key=lambda lot: (-lot.unequal, -lot.came, lot.value)))


def _host_sizes(hosts: Mapping[str, Any], index: str) -> tuple[Lot, ...]:
    """Return lots by size class of hosts, against what the step dropped of all documents of these hosts."""
    classes: dict[int, list[int]] = {}
    for entry in hosts["least"].values():
        dropped = entry.get("dropped", {})
        came = entry["documents"] - sum(count for step, count in dropped.items() if int(step) < int(index))
        pair = classes.setdefault(max(size for size in HOST_SIZES if size <= entry["documents"]), [0, 0])
        pair[0], pair[1] = pair[0] + came, pair[1] + dropped.get(index, 0)
    came, lost = (sum(pair[place] for pair in classes.values()) for place in (0, 1))
    if not lost:
        return ()
    counts = {_size_name(size): (pair[0], pair[1]) for size, pair in classes.items() if pair[0]}
    lots = _lots(HOST_SIZE, counts, (0, 0), (came, lost))
    return lots if len(lots) > 1 else ()


def _size_name(least: int) -> str:
    if least == 1:
        return "hosts of 1 document"
    if least == HOST_SIZES[-1]:
        return f"hosts of {grouped(least)} or more"
    return f"hosts of {least} to {HOST_SIZES[HOST_SIZES.index(least) + 1] - 1}"


def length_name(edge: str, what: str = "characters") -> str:
    """Return in words the bin of lengths that ends before `edge`: "32 to 63 characters"."""
    if edge == LENGTH_BINS[-1]:
        return f"{grouped(int(LENGTH_BINS[-2]))} {what} or more"
    first = 0 if edge == LENGTH_BINS[0] else int(edge) // 2
    return f"{grouped(first)} to {grouped(int(edge) - 1)} {what}"
