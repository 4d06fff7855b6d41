"""How a run does against what was declared and forecast of it, from its log alone.

Invariants: the log is the one truth; what is not known yet is None, never a guess. A run failed by an error or by a
condition that was declared as failure; it passed when it is over without one. A run that differs from its declaration
is told so, and its forecast is void.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trainers.config import differences
from trainers.evidence.declaration import NAME as DECLARATION
from trainers.evidence.declaration import Condition, Declaration, DeclarationError, load_declaration
from trainers.evidence.forecast import NAME as FORECAST
from trainers.evidence.forecast import (
    Forecast,
    ForecastError,
    Point,
    final_losses,
    load_forecast,
    scored,
    stretch_means,
    voids,
)
from trainers.health import spikes
from trainers.log import NAME as LOG
from trainers.log import Log, read_log

Verdict = Literal["running", "passed", "failed"]
Outcome = Literal["declared", "running", "stopped", "finished", "failed"]


@dataclass(frozen=True, slots=True)
class Told:
    """A condition against the log: its value, None where it is not known yet."""

    condition: Condition
    value: float | None

    @property
    def holds(self) -> bool | None:
        """Whether it is met; None while nobody knows."""
        return None if self.value is None else self.condition.holds(self.value)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the log says of a declaration.

    `changes` are differences from what was declared, `voids` from what was forecast; `points` are forecasts met so far;
    `failure` are the declared conditions of failure, `health` the checks. `reason` says why a run failed or stopped.
    """

    declaration: Declaration | None
    forecast: Forecast | None
    outcome: Outcome
    reason: str
    changes: tuple[str, ...] = ()
    voids: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()
    health: tuple[Told, ...] = ()
    failure: tuple[Told, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The run's own score: failed by an error or a declared condition, passed when it is over without one."""
        if self.outcome == "failed" or any(told.holds for told in self.failure):
            return "failed"
        return "passed" if self.outcome == "finished" else "running"


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement, or why there is none: a file that was changed is said where the run is shown."""

    judgement: Judgement | None
    problem: str = ""

    @property
    def verdict(self) -> str:
        """The run's own score in a word."""
        return "not readable" if self.judgement is None else self.judgement.verdict


def judged_of(run: Path, log: Log | None = None) -> Judged | None:
    """Return how the run does, by `log` if it was read already; None where nothing was declared or forecast of it."""
    if not any((run / name).exists() for name in (DECLARATION, FORECAST)):
        return None
    try:
        return Judged(judge(run, log))
    except (DeclarationError, ForecastError, ValueError, KeyError, TypeError) as error:
        return Judged(None, str(error))


def judge(run: Path, log: Log | None = None) -> Judgement:
    """Return what the log in `run` says of what was declared and forecast there.

    Raises:
        DeclarationError: the declaration was changed.
        ForecastError: the forecast was changed, or is another than the one declared.
        ValueError: a line of the log is no JSON.
    """
    declared = load_declaration(run)
    path = run / FORECAST
    quoted = declared.forecast if declared is not None else ""
    forecast = load_forecast(path, quoted or None) if quoted or path.exists() else None
    if log is None:
        log = read_log(run) if (run / LOG).exists() else _nothing()
    outcome, reason = outcome_of(log)
    known = measured(log)
    return Judgement(
        declared,
        forecast,
        outcome,
        reason,
        tuple(_changes(declared, log)) if declared is not None else (),
        tuple(voids(forecast, log)) if forecast is not None else (),
        tuple(scored(forecast, log)) if forecast is not None else (),
        _told(declared.health if declared else (), known, outcome),
        _told(declared.failure if declared else (), known, outcome),
    )


def outcome_of(log: Log) -> tuple[Outcome, str]:
    """Return how a run ended, and why: by an error, finished, stopped by somebody, or still running (or killed)."""
    if not log.starts:
        return "declared", "it has not begun"
    steps = log.starts[-1].get("config", {}).get("steps")
    done = max((line["step"] + 1 for line in log.train), default=0)
    told = f"{done:,} of {steps:,} steps" if isinstance(steps, int) else f"{done:,} steps"
    if len(log.stops) < len(log.starts):
        return ("finished", told) if done == steps else ("running", f"{told}: running, or killed")
    reason = str(log.stops[-1].get("timing", {}).get("reason", ""))
    if reason == "finished":
        return "finished", told
    if ": " in reason:
        return "failed", f"{reason} ({told})"
    return "stopped", f"{told}, {'as asked' if reason == 'steps' else reason or 'for no reason that is told'}"


def measured(log: Log) -> dict[str, float]:
    """Return the metrics of conditions that the log gives so far."""
    found: dict[str, float] = {"repeated": float(log.repeated), "spikes": float(len(spikes(log.train)))}
    config = log.starts[-1].get("config", {}) if log.starts else {}
    warmup = int(config.get("optimizer.warmup", 0))
    norms = [line["gradient_norm"] for line in log.train if line["step"] >= warmup and "gradient_norm" in line]
    if norms:
        found["gradient_norm"] = max(norms)
    if isinstance(steps := config.get("steps"), int):
        if (last := stretch_means(log, steps).get(100)) is not None:
            found["training"] = last
        mean, sources = final_losses(log, steps)
        if mean is not None:
            found |= {"loss": mean, **{f"loss[{name}]": loss for name, loss in sources.items()}}
    return found


def _told(conditions: tuple[Condition, ...], known: Mapping[str, float], outcome: Outcome) -> tuple[Told, ...]:
    begun = known if outcome != "declared" else {}
    return tuple(
        Told(each, begun.get(f"{each.metric}[{each.source}]" if each.source else each.metric)) for each in conditions
    )


def _changes(declared: Declaration, log: Log) -> list[str]:
    found = _other_parent(declared, log)
    for start in log.starts:
        new = differences(declared.config, start.get("config", {}))
        if start.get("plan") != declared.plan:
            new.append(f"plan: declared {declared.plan}, run {start.get('plan')}")
        found += [f"{each} (from step {start['step']})" for each in new if each not in "".join(found)]
    return found


def _other_parent(declared: Declaration, log: Log) -> list[str]:
    """Return how the first state differs from the declared one, where one of the two is a branch's."""
    begun = (log.starts[0].get("parent") or {}) if log.starts else declared.parent
    said, found = (tuple(one.get(key) for key in ("step", "state")) for one in (declared.parent, begun))
    if said == found:
        return []
    words = [f"step {step}, state {state}" if state else "its own beginning" for step, state in (said, found)]
    return [f"begins from: declared {words[0]}, run {words[1]}"]


def _nothing() -> Log:
    return Log(starts=(), stops=(), train=(), validation=(), checkpoints=(), repeated=0, disagreed=())
