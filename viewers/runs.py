"""Training runs that a report is given: losses by step from `log.jsonl`, without anything of the clock or the host.

A log is an input like any other: what is no number of a reasonable size is left out and counted. Memory: the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from curate.configuration import ConfigurationError
from mixtures.plan import Plan
from trainers.evidence.diary import Diary, read_diary
from trainers.evidence.judgement import Judged, judged_of
from trainers.log import Line, read_log

LARGEST: Final = 2**40
"""Steps and losses beyond it are none; nor is a loss that is infinite or not a number."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Losses in nats per predicted token, by step, ascending."""

    steps: tuple[int, ...]
    losses: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True, slots=True)
class RunView:
    """A training run: the plan of its last start, its configuration, and its curves.

    `validation` has a curve per source of held-out text; `skipped` counts lines without a finite loss, `repeated` steps
    that were trained again after a stop, `disagreed` those of them that came out otherwise. `judged` is how it does
    against what was declared and forecast of it, if anything was; `diary` has what people noted.
    """

    name: str
    plan: str
    config: Mapping[str, Any]
    train: Curve
    validation: Mapping[str, Curve]
    skipped: int
    repeated: int
    disagreed: int
    judged: Judged | None = None
    diary: Diary = field(default_factory=Diary)


def load_run(folder: Path) -> RunView:
    """Return the run in `folder`.

    Raises:
        ConfigurationError: there is none, or its log cannot be read.
    """
    try:
        log = read_log(folder)
        sources = sorted({str(line["source"]) for line in log.validation})
        validation = {s: _curve(line for line in log.validation if str(line["source"]) == s) for s in sources}
        start: Mapping[str, Any] = log.starts[-1] if log.starts else {}
        train = _curve(log.train)
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{folder} holds no training run: name the folder given to curate train --run"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{folder} holds no training run that can be read: {error}") from error
    lines = len(log.train) + len(log.validation)
    shown = len(train) + sum(map(len, validation.values()))
    config = start.get("config", {})
    return RunView(
        folder.resolve().name,
        str(start.get("plan", "")),
        config if isinstance(config, Mapping) else {},
        train,
        validation,
        lines - shown,
        log.repeated,
        len(log.disagreed),
        judged_of(folder, log),
        read_diary(folder),
    )


def trains_on(plan: Plan | None, run: RunView) -> bool:
    """Return whether `run` follows `plan`, or one that agrees with it as far as the run goes."""
    steps = max(run.train.steps, default=-1) + 1
    return plan is not None and plan.agrees_with(run.plan, steps)


def _curve(lines: Iterable[Line]) -> Curve:
    found = [(line["step"], line["loss"]) for line in lines if _is_point(line["step"], line["loss"])]
    return Curve(tuple(step for step, _ in found), tuple(float(loss) for _, loss in found))


def _is_point(step: object, loss: object) -> bool:
    is_loss = isinstance(loss, (int, float)) and abs(loss) <= LARGEST
    return is_loss and isinstance(step, int) and 0 <= step <= LARGEST
