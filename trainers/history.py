"""A run with the runs that it branched from: its segments, oldest first, each up to where the next one begins.

The link stands in the "start" lines of the log and in the checkpoints: which run, at which step, with which state. The
folder in it is where the parent was when the branch was made, relative to the run; what is named there and is gone, or
has another state at that step, is said and left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainers.log import Line, Log, read_log

DEEPEST: Final = 100
"""Branches of branches that are followed."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a line of runs: steps `first` to below `stop` (None: the run's own end) are those of `name`."""

    name: str
    first: int
    stop: int | None
    log: Log
    changed: tuple[str, ...]
    """What differs from the run that it branched from, a phrase for each field."""

    def lines(self, lines: tuple[Line, ...]) -> list[Line]:
        """Return those of `lines` that belong to this segment."""
        return [
            line for line in lines if self.first <= line["step"] and (self.stop is None or line["step"] < self.stop)
        ]


def segments(folder: Path) -> tuple[list[Segment], str]:
    """Return the segments of the run in `folder`, and why the line ends earlier than it began ("" if it does not).

    Raises:
        FileNotFoundError: there is no log.
        ValueError: a line of a log is no JSON.
    """
    found: list[Segment] = []
    stop: int | None = None
    place = folder.resolve()
    for _ in range(DEEPEST):
        log = read_log(place)
        link = _link(log)
        first = link["step"] if link else 0
        found.insert(0, Segment(place.name, first, stop, log, tuple(link["changed"]) if link else ()))
        if link is None:
            return found, ""
        place, stop = (place / link["folder"]).resolve(), first
        if problem := _problem(place, link):
            return found, problem
    return found, f"more than {DEEPEST} branches of branches"


def _link(log: Log) -> dict[str, Any] | None:
    links = [line["parent"] for line in log.starts if line.get("parent")]
    return links[0] if links else None


def _problem(place: Path, link: dict[str, Any]) -> str:
    try:
        states = {line["step"]: line["state"] for line in read_log(place).checkpoints}
    except (OSError, ValueError) as error:
        return f"the run {link['run']} that it branched from cannot be read: {error}"
    if states.get(link["step"], link["state"]) != link["state"]:
        return f"{place} is another run than {link['run']}: its state at step {link['step']} differs"
    return ""
