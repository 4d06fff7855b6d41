"""A forecast: what a run is expected to lose, written before it runs, and how the run does against it.

`forecast.json` is canonical JSON with its own digest: plan and flat configuration of the target run, the rungs that it
comes from (compute, losses by seed, plans), the law, and bands of `level` for the loss on held-out text at the end, for
each source of it, and for each twentieth of training: the mean loss of its batches before their updates, so that a run
can be scored while it trains. Numbers are rounded to six decimals and written as strings.

A forecast is of one plan, configuration and held-out text: for a run that has others it says nothing, and `voids` says
in what they differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from curate.configuration import ConfigurationError
from curate.formats import Format, FormatError
from curate.store import StoreError, check_self_digest, json_line, self_digested
from trainers.config import differences
from trainers.evidence.scaling import Band, Law
from trainers.log import Log

NAME: Final = "forecast.json"
FORMAT: Final = Format(1, "read it with the version that wrote it, or make the forecast again", prefix="forecast ")
STRETCHES: Final = 20
"""Parts that training is divided into: 5 % each."""

PLACES: Final = 6


class ForecastError(ConfigurationError):
    """A file that is no forecast, or not the one that was written."""


@dataclass(frozen=True, slots=True)
class RungRecord:
    """A rung as the forecast has it: its size, its runs, and what the other rungs say of it."""

    width: int
    parameters: int
    tokens: int
    flop: float
    plan: str
    losses: tuple[float, ...]
    left_out: Band


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is forecast of the run of `plan` and `config`; see the module.

    `held_out` has the predicted tokens of each source, by which other held-out text is noticed; `loss` is the band of
    the mean over all of them, `sources` those of each, `progress` those of each stretch that could be forecast.
    """

    plan: str
    config: Mapping[str, int | str]
    flop: float
    level: float
    law: Law
    noise: float
    noise_degrees: int
    is_noise_measured: bool
    loss: Band
    sources: Mapping[str, Band]
    held_out: Mapping[str, int]
    progress: Mapping[int, Band]
    rungs: tuple[RungRecord, ...]
    caveats: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The digest to quote before the run."""
        return str(self.to_json()["digest"])

    @property
    def curve(self) -> float:
        """The loss of the fitted curve at the target."""
        return self.law.at(self.flop)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as they stand in the file, with the digest."""
        return self_digested(
            {
                "format": FORMAT.stamp,
                "plan": self.plan,
                "config": dict(self.config),
                "flop": _written(self.flop),
                "level": _written(self.level),
                "law": {
                    "irreducible": _written(self.law.irreducible),
                    "scale": repr(self.law.scale),
                    "exponent": _written(self.law.exponent),
                },
                "noise": {
                    "deviation": _written(self.noise),
                    "degrees": self.noise_degrees,
                    "measured": self.is_noise_measured,
                },
                "loss": _band(self.loss),
                "curve": _written(self.curve),
                "sources": {name: _band(band) for name, band in self.sources.items()},
                "held_out": dict(self.held_out),
                "progress": [{"percent": percent, **_band(band)} for percent, band in sorted(self.progress.items())],
                "rungs": [_rung(rung) for rung in self.rungs],
                "caveats": list(self.caveats),
            }
        )

    def save(self, path: Path) -> None:
        """Write the forecast to `path`.

        Raises:
            ForecastError: there is another one; a forecast is not written over.
        """
        content = json_line(self.to_json())
        try:
            with path.open("xb") as file:
                file.write(content)
        except FileExistsError:
            if path.read_bytes() != content:
                raise ForecastError(f"{path} holds another forecast, and forecasts stay: choose another path") from None


def load_forecast(path: Path, digest: str | None = None) -> Forecast:
    """Return the forecast at `path`; `digest` is what it must have, as a declaration quotes it.

    Raises:
        ForecastError: there is none, it was changed, or it is another.
    """
    try:
        value = check_self_digest(json.loads(path.read_bytes()), str(path))
        fields = FORMAT.lift(value, str(path))
        found = _from_json(fields)
    except (OSError, ValueError, KeyError, TypeError, StoreError, FormatError) as error:
        raise ForecastError(f"{path} is no forecast: {error}") from error
    if digest is not None and value["digest"] != digest:
        raise ForecastError(f"{path}: another forecast, digest {value['digest']} ≠ {digest}")
    return found


@dataclass(frozen=True, slots=True)
class Point:
    """One forecast against what came: `where` is "10 %", "held-out text" or a source of it."""

    where: str
    band: Band
    loss: float

    @property
    def is_inside(self) -> bool:
        """Whether the band holds the loss."""
        return self.band.holds(self.loss)


def voids(forecast: Forecast, log: Log) -> list[str]:
    """Return in what the run differs from the one that was forecast: if in anything, the forecast is void."""
    found = []
    for start in log.starts[:1]:
        found += differences(forecast.config, start.get("config", {}))
        if start.get("plan") != forecast.plan:
            found.append(f"plan: forecast {forecast.plan}, run {start.get('plan')}")
    if any(start.get("plan") != log.starts[0].get("plan") for start in log.starts[1:]):
        found.append("plan: it changed while the run went on")
    if any(start.get("parent") for start in log.starts):
        found.append("the run branched from another")
    told = {str(line["source"]): line["predicted"] for line in log.validation}
    found += [
        f"held-out text: forecast {forecast.held_out.get(name, 0)} tokens of {name}, run {told.get(name, 0)}"
        for name in sorted({*forecast.held_out, *told} if told else ())
        if forecast.held_out.get(name) != told.get(name)
    ]
    return found


def scored(forecast: Forecast, log: Log) -> list[Point]:
    """Return each forecast that the log can be held against, in the order of training; nothing of what is to come."""
    steps = int(forecast.config["steps"])
    means = stretch_means(log, steps)
    points = [Point(f"{p} %", band, means[p]) for p, band in sorted(forecast.progress.items()) if p in means]
    last, losses = final_losses(log, steps)
    if last is not None and forecast.held_out:
        points.append(Point("held-out text", forecast.loss, last))
        points += [Point(name, band, losses[name]) for name, band in forecast.sources.items() if name in losses]
    elif 100 in means and not forecast.held_out:
        points.append(Point("last batches", forecast.loss, means[100]))
    return points


def stretch_means(log: Log, steps: int) -> dict[int, float]:
    """Return percent of training done → mean loss of the batches of the 5 % before; of stretches that are complete."""
    losses = {line["step"]: line["loss"] for line in log.train}
    means = {}
    for number in range(1, STRETCHES + 1):
        inside = range((number - 1) * steps // STRETCHES, number * steps // STRETCHES)
        found = [losses.get(step) for step in inside]
        known = [loss for loss in found if loss is not None]
        if known and len(known) == len(found):
            means[100 * number // STRETCHES] = sum(known) / len(known)
    return means


def final_losses(log: Log, steps: int) -> tuple[float | None, dict[str, float]]:
    """Return the mean loss over all held-out tokens after `steps` updates, None before, and that of each source."""
    lines = [line for line in log.validation if line["step"] == steps]
    predicted = sum(line["predicted"] for line in lines)
    if not predicted:
        return None, {}
    mean = sum(line["loss"] * line["predicted"] for line in lines) / predicted
    return mean, {str(line["source"]): line["loss"] for line in lines}


def _written(value: float) -> str:
    return repr(round(float(value), PLACES))


def _band(band: Band) -> dict[str, str]:
    return {"low": _written(band.low), "median": _written(band.median), "high": _written(band.high)}


def _rung(rung: RungRecord) -> dict[str, Any]:
    return {
        "width": rung.width,
        "parameters": rung.parameters,
        "tokens": rung.tokens,
        "flop": _written(rung.flop),
        "plan": rung.plan,
        "losses": [_written(loss) for loss in rung.losses],
        "left_out": _band(rung.left_out),
    }


def _from_json(value: Mapping[str, Any]) -> Forecast:
    level = float(value["level"])
    law, noise = value["law"], value["noise"]

    def band(fields: Mapping[str, str]) -> Band:
        return Band(float(fields["low"]), float(fields["median"]), float(fields["high"]), level)

    rungs: Sequence[Mapping[str, Any]] = value["rungs"]
    return Forecast(
        plan=value["plan"],
        config=value["config"],
        flop=float(value["flop"]),
        level=level,
        law=Law(float(law["irreducible"]), float(law["scale"]), float(law["exponent"])),
        noise=float(noise["deviation"]),
        noise_degrees=noise["degrees"],
        is_noise_measured=noise["measured"],
        loss=band(value["loss"]),
        sources={name: band(fields) for name, fields in value["sources"].items()},
        held_out=value["held_out"],
        progress={entry["percent"]: band(entry) for entry in value["progress"]},
        rungs=tuple(
            RungRecord(
                rung["width"],
                rung["parameters"],
                rung["tokens"],
                float(rung["flop"]),
                rung["plan"],
                tuple(map(float, rung["losses"])),
                band(rung["left_out"]),
            )
            for rung in rungs
        ),
        caveats=tuple(value["caveats"]),
    )
