"""What the log of a run says about its health: spikes, divergence, stalls, kills, goodput, MFU.

Pure functions on the lines of a log, so that the page, the sinks and a test come to the same numbers. All rules look
back only: what is said of step s does not change when the run goes on. Cost: linear in the log, times `WINDOW`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from trainers.log import Line

WINDOW: Final = 50
"""Steps that a step is compared with: those before it."""

FEWEST: Final = 20
"""Steps before the first that can be a spike."""

SPIKE: Final = 8.0
"""A loss is a spike when it lies this many robust standard deviations (1.4826 × MAD) above the median before it …"""

SPIKE_SHARE: Final = 0.02
"""… and at least this share of the median."""

DIVERGED: Final = 1.05
"""A run has diverged when the median of its last steps is above its lowest median by this factor."""

STALL: Final = 5.0
"""A step stalls when it takes this many times the median before it, and a second more."""


@dataclass(frozen=True, slots=True)
class Spike:
    """A loss far above those before it; `expected` is their median."""

    step: int
    loss: float
    expected: float


@dataclass(frozen=True, slots=True)
class Session:
    """A stretch between a start and what ended it.

    `ended` is the reason that the log has ("finished", "SIGTERM", an error), "killed" where another start follows
    without one, or "" while nothing tells. `lost` counts the steps that were made and are made again by a later one.
    """

    time: float
    host: str
    hosts: int
    devices: int
    device: str
    first: int
    last: int
    ended: str
    lost: int


def spikes(train: Sequence[Line]) -> list[Spike]:
    """Return the spikes among the "train" lines, ascending; see `SPIKE`. One does not raise the bar for the next."""
    found, before = [], list[float]()
    for line in train:
        loss = line["loss"]
        if loss is None:
            continue
        median = statistics.median(before) if before else loss
        spread = 1.4826 * statistics.median(abs(each - median) for each in before) if before else 0.0
        if len(before) >= FEWEST and loss - median > max(SPIKE * spread, SPIKE_SHARE * median):
            found.append(Spike(line["step"], loss, median))
        else:
            before = [*before[1 - WINDOW :], loss]
    return found


def divergence(train: Sequence[Line]) -> tuple[float, float] | None:
    """Return (median loss of the last steps, lowest such median) where the run has diverged, else None."""
    losses = [line["loss"] for line in train if line["loss"] is not None]
    medians = [statistics.median(losses[end - WINDOW : end]) for end in range(len(losses), WINDOW - 1, -WINDOW)]
    if len(medians) < 2 or medians[0] <= DIVERGED * min(medians):
        return None
    return medians[0], min(medians)


def stalls(train: Sequence[Line]) -> list[tuple[int, float, float]]:
    """Return (step, seconds, median seconds before) of steps that took much longer; see `STALL`."""
    found, before = [], list[float]()
    for line in train:
        seconds = line["timing"]["seconds"]
        usual = statistics.median(before) if before else seconds
        if len(before) >= FEWEST and seconds > STALL * usual + 1:
            found.append((line["step"], seconds, usual))
        before = [*before[1 - WINDOW :], seconds]
    return found


def sessions(lines: Sequence[Line]) -> list[Session]:
    """Return the sessions of a log, from its lines as they were written."""
    starts = [place for place, line in enumerate(lines) if line["kind"] == "start"]
    begins = [lines[place]["step"] for place in starts]
    found = []
    for number, place in enumerate(starts):
        is_last = number + 1 == len(starts)
        part = lines[place : None if is_last else starts[number + 1]]
        made = [line["step"] for line in part if line["kind"] == "train"]
        done = max(made, default=part[0]["step"] - 1) + 1
        stop = next((line["timing"].get("reason", "") for line in part if line["kind"] == "stop"), None)
        ended = stop if stop is not None else "" if is_last else "killed"
        again = min(begins[number + 1 :], default=done)
        found.append(_session(part[0], done, ended, max(0, done - again)))
    return found


def goodput(lines: Sequence[Line]) -> float | None:
    """Return the share of wall time since the first start that went into steps that count.

    A step that was made again counts the last time; validation, checkpoints, restarts and the time between a kill and
    the next start are what is lost. None before the first step.
    """
    counted = {line["step"]: line["timing"]["seconds"] for line in lines if line["kind"] == "train"}
    times = [line["timing"]["time"] for line in lines if "time" in line["timing"]]
    wall = max(times, default=0.0) - min(times, default=0.0)
    return min(1.0, sum(counted.values()) / wall) if counted and wall > 0 else None


def tokens_per_second(train: Sequence[Line]) -> float | None:
    """Return the median speed of the last steps."""
    speeds = [line["timing"]["tokens_per_second"] for line in train[-WINDOW:]]
    return statistics.median(speeds) if speeds else None


def utilisation(start: Line, speed: float | None) -> float | None:
    """Return the model FLOP utilisation at `speed` tokens a second; None where the start does not tell the peak."""
    peak, per_token = start["timing"].get("peak_flops"), start.get("flop_per_token")
    return speed * per_token / peak if speed and peak and per_token else None


def _session(start: Line, done: int, ended: str, lost: int) -> Session:
    timing, environment = start["timing"], start.get("environment", {})
    return Session(
        float(timing.get("time", 0)),
        str(timing.get("host", "")),
        _number(environment.get("hosts")),
        _number(environment.get("devices")),
        str(environment.get("device", "")),
        start["step"],
        done,
        ended,
        lost,
    )


def _number(value: Any) -> int:
    return int(value) if str(value).isdecimal() else 1
