"""Declared runs: what is expected of a run, and what would count as failure, written before its first step.

`declaration.json` in the run's folder is canonical JSON with its own digest: the hypothesis, the flat configuration,
the digests of plan and forecast (whose file lies beside it), health checks and conditions of failure, of a branch the
step and state that it begins from, and when it was declared. A folder whose log has steps is refused, and a
declaration stays as it is; `judgement` scores the run by it.

A condition is "METRIC < NUMBER" (or <=, >, >=). Metrics of the log: `loss` (held-out text at the end), `loss[SOURCE]`,
`training` (batches of the last 5 %), `gradient_norm` (largest after the warmup), `spikes` (as `trainers.health` counts
them), `repeated` (steps trained again after stops). `loss` and `training` are told when the run is over, the others as
it goes.
"""

from __future__ import annotations

import json
import operator
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from curate.configuration import ConfigurationError
from curate.formats import Format, FormatError
from curate.store import StoreError, check_self_digest, json_line, self_digested
from trainers.config import differences
from trainers.evidence.forecast import NAME as FORECAST
from trainers.evidence.forecast import Forecast, ForecastError, load_forecast
from trainers.log import NAME as LOG
from trainers.log import read_log

NAME: Final = "declaration.json"
FORMAT: Final = Format(1, "read it with the version that wrote it", prefix="declaration ")
HEALTH: Final = ("gradient_norm < 100", "spikes <= 3")
"""Health checks of a run that declares none."""

_CONDITION: Final = re.compile(r"([a-z_]+)(?:\[(.+)\])?\s*(<=|>=|<|>)\s*([0-9.eE+-]+)")
_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
METRICS: Final = ("loss", "training", "gradient_norm", "spikes", "repeated")


class DeclarationError(ConfigurationError):
    """A declaration that cannot be made any more, or was changed."""


@dataclass(frozen=True, slots=True)
class Condition:
    """`metric` (of `source`, where one is named) compared with `limit`."""

    metric: str
    source: str
    comparison: str
    limit: str

    def __str__(self) -> str:
        where = f"[{self.source}]" if self.source else ""
        return f"{self.metric}{where} {self.comparison} {self.limit}"

    def holds(self, value: float) -> bool:
        """Return whether `value` meets it."""
        return _COMPARE[self.comparison](value, float(self.limit))


@dataclass(frozen=True, slots=True)
class Declaration:
    """What was declared of a run; see the module."""

    hypothesis: str
    plan: str
    config: Mapping[str, int | str]
    forecast: str
    health: tuple[Condition, ...]
    failure: tuple[Condition, ...]
    declared: str
    parent: Mapping[str, int | str] = field(default_factory=dict)
    """Of a branch: the "step" of its first state and the digest of that "state"."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as they stand in the file, with the digest."""
        return self_digested(
            {
                "format": FORMAT.stamp,
                "hypothesis": self.hypothesis,
                "plan": self.plan,
                "config": dict(self.config),
                "forecast": self.forecast,
                "health": [str(condition) for condition in self.health],
                "failure": [str(condition) for condition in self.failure],
                "declared": self.declared,
                **({"parent": dict(self.parent)} if self.parent else {}),
            }
        )

    @property
    def digest(self) -> str:
        """The digest to quote before the run."""
        return str(self.to_json()["digest"])


def condition(text: str) -> Condition:
    """Return the condition that `text` states.

    Raises:
        ConfigurationError: it states none; the message says how one is written.
    """
    found = _CONDITION.fullmatch(text.strip())
    try:
        if found is None or found[1] not in METRICS or (found[2] and found[1] != "loss"):
            raise ValueError
        float(found[4])
    except ValueError:
        raise ConfigurationError(
            f"{text!r} is no condition: write METRIC < NUMBER (or <=, >, >=), with METRIC one of {', '.join(METRICS)}, "
            "or loss[SOURCE]"
        ) from None
    return Condition(found[1], found[2] or "", found[3], found[4])


def declare(
    run: Path,
    hypothesis: str,
    plan: str,
    config: Mapping[str, int | str],
    *,
    forecast: Path | None = None,
    health: tuple[str, ...] = HEALTH,
    failure: tuple[str, ...] = (),
    parent: Mapping[str, int | str] | None = None,
    now: float | None = None,
) -> Declaration:
    """Write the declaration of the run that will be made in `run`, and the forecast beside it.

    Args:
        run: the folder; made if absent.
        hypothesis: what the run shall show.
        plan: digest of its plan.
        config: its flat configuration.
        forecast: the file of its forecast; without conditions of failure, a loss above its band is one.
        health: conditions that a healthy run meets.
        failure: conditions of which each means that the run failed.
        parent: of a branch: the "step" that it begins at and the digest of the "state" there.
        now: when, in seconds since 1970; the clock's time where it is None.

    Raises:
        DeclarationError: the run has begun, or was declared otherwise.
        ForecastError: the forecast is none, or of another plan or configuration, or the run is a branch.
        ConfigurationError: no hypothesis, nothing that would count as failure, or a condition that is none.
    """
    if not hypothesis.strip():
        raise ConfigurationError("a declaration needs a hypothesis: what the run shall show")
    said = None if forecast is None else load_forecast(forecast)
    if said is not None:
        if parent:
            raise ForecastError("a forecast is of a run from its beginning, not of a branch: declare it without one")
        _require_same(said, plan, config)
        failure = failure or (f"loss > {round(said.loss.high, 6)!r}",)
    if not failure:
        raise ConfigurationError("say what would count as failure, as --fails-if 'loss > 3.1', or give a forecast")
    _refuse_begun(run)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() if now is None else now))
    checks, failures = tuple(map(condition, health)), tuple(map(condition, failure))
    digest = "" if said is None else said.digest
    made = Declaration(hypothesis, plan, dict(config), digest, checks, failures, when, dict(parent or {}))
    run.mkdir(parents=True, exist_ok=True)
    if said is not None:
        said.save(run / FORECAST)
    try:
        with (run / NAME).open("xb") as file:
            file.write(json_line(made.to_json()))
    except FileExistsError:
        raise DeclarationError(f"{run} is declared already, and declarations stay: take another folder") from None
    return made


def load_declaration(run: Path) -> Declaration | None:
    """Return the declaration of `run`, None where there is none.

    Raises:
        DeclarationError: it was changed, or is of another format.
    """
    path = run / NAME
    if not path.exists():
        return None
    try:
        value = FORMAT.lift(check_self_digest(json.loads(path.read_bytes()), str(path)), str(path))
        return Declaration(
            str(value["hypothesis"]),
            str(value["plan"]),
            value["config"],
            str(value["forecast"]),
            tuple(map(condition, value["health"])),
            tuple(map(condition, value["failure"])),
            str(value["declared"]),
            value.get("parent", {}),
        )
    except (OSError, ValueError, KeyError, TypeError, StoreError, FormatError) as error:
        raise DeclarationError(f"{path} is no declaration: {error}") from error


def _refuse_begun(run: Path) -> None:
    if (run / LOG).exists() and (log := read_log(run)).train:
        raise DeclarationError(
            f"{run} has {len(log.train):,} steps in its log: a declaration comes before the run. Take another folder"
        )


def _require_same(forecast: Forecast, plan: str, config: Mapping[str, int | str]) -> None:
    found = differences(forecast.config, config)
    if forecast.plan != plan:
        found.append(f"plan: forecast {forecast.plan}, run {plan}")
    if found:
        raise ForecastError(f"the forecast is of another run: {'; '.join(found)}")
