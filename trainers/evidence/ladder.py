"""A scaling ladder: small runs of the one dial, and the forecast that they make of the target run.

The target is `recipe(width, all tokens of the plan)`; its ratio of tokens to parameters (weights that a token meets)
is that of every rung. A rung reads the plan scaled down (`mixtures.scaled`): the same mixture, phases in proportion,
never a component more than once. Some rungs, the smallest first, are trained with several seeds, of the order of the
data too, which tells what a seed is worth.

Each run is a folder of `trainers.train`, so a ladder that was stopped goes on. Cost: the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from curate.configuration import ConfigurationError
from mixtures.plan import Plan
from mixtures.scaled import epochs, scaled
from trainers.batches import Batch, Loader
from trainers.config import Config, flat, recipe
from trainers.evidence.forecast import Forecast, RungRecord, final_losses, stretch_means
from trainers.evidence.scaling import LEVEL, MINIMUM_RUNGS, Band, Rung, fit_law, leave_one_out, measured_noise, predict
from trainers.log import Log, read_log
from trainers.speed import flop_per_token
from trainers.train import train

SEEDS: Final = (3,)
"""Runs of the rungs, ascending; those that are not named have one."""

LEAST_STEPS: Final = 20
"""Steps of a rung: one for each stretch that is forecast."""


@dataclass(frozen=True, slots=True)
class Size:
    """A run of the ladder: configuration and plan, the weights that a token meets, and compute in operations."""

    config: Config
    plan: Plan
    parameters: int
    flop: float

    @property
    def width(self) -> int:
        """The dial."""
        return self.config.model.width

    @property
    def tokens(self) -> int:
        """Tokens that it reads."""
        return self.config.steps * self.config.batch * self.config.length


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rungs, ascending, and the target that they are to forecast."""

    rungs: tuple[Size, ...]
    target: Size

    def __str__(self) -> str:
        lines = [f"{'':8}{'width':>6}{'parameters':>14}{'tokens':>14}{'steps':>8}{'FLOP':>12}"]
        for name, size in [*(("rung", rung) for rung in self.rungs), ("target", self.target)]:
            lines.append(
                f"{name:8}{size.width:>6}{size.parameters:>14,}{size.tokens:>14,}{size.config.steps:>8,}{size.flop:>12.3g}"
            )
        return "\n".join(lines)


def plan_ladder(plan: Plan, widths: Sequence[int], target: int) -> Ladder:
    """Return the ladder of `widths` below the run of width `target` that reads all of `plan`.

    Raises:
        ConfigurationError: fewer than three widths, one not below the target's, a rung of too few steps, or one that
            reads a component more than once; or phases with a batch or length of their own.
    """
    if len(set(widths)) < max(MINIMUM_RUNGS, len(widths)) or max(widths, default=0) >= target:
        raise ConfigurationError(
            f"a ladder has at least {MINIMUM_RUNGS} different widths, all below the target's {target}, got "
            f"{list(widths)}"
        )
    if any(segment.batch or segment.length for segment in plan.segments):
        raise ConfigurationError("a phase has a batch or length of its own: rungs have steps of one size. Leave it out")
    whole = _size(plan, target, plan.steps)
    ratio = whole.tokens / whole.parameters
    rungs = []
    for width in sorted(widths):
        parameters = _parameters(plan, width)
        steps = int(ratio * parameters) // (plan.batch * plan.sequences.length)
        if steps < LEAST_STEPS:
            raise ConfigurationError(
                f"width {width} reads {steps} steps at {ratio:.1f} tokens per parameter, fewer than {LEAST_STEPS}: "
                "take larger rungs, a smaller batch, or a plan of more tokens"
            )
        rung = _size(scaled(plan, steps), width, steps)
        name, passes = epochs(rung.plan)
        if passes > 1:
            raise ConfigurationError(
                f"the rung of width {width} would read {name!r} {passes:.2f} times: rungs read no text twice. Take "
                "smaller widths, or a plan of fewer tokens"
            )
        rungs.append(rung)
    return Ladder(tuple(rungs), whole)


def run_ladder(
    ladder: Ladder,
    loader_of: Callable[[Plan], Loader],
    validation: Mapping[str, Sequence[Batch]],
    folder: Path,
    *,
    seeds: Sequence[int] = SEEDS,
    told: Callable[[str], None] = lambda line: None,
) -> list[list[Log]]:
    """Train all runs of `ladder` below `folder` that are not finished; return their logs, by rung and seed.

    Args:
        ladder: what to train.
        loader_of: gives the loader of a plan.
        validation: held-out batches by source.
        folder: holds a folder for each run: "w64-s0" is width 64, seed 0.
        seeds: runs of each rung, ascending, 1 where none is named; all 1 leave the noise to be assumed.
        told: called with the name of each run before it is trained.

    Raises:
        ConfigurationError: a rung without a run, or more numbers of seeds than rungs.
        TrainingError: a run diverged.
    """
    if min(seeds, default=0) < 1 or len(seeds) > len(ladder.rungs):
        raise ConfigurationError(f"{len(ladder.rungs)} rungs have at least one seed each, got {list(seeds)}")
    logs: list[list[Log]] = []
    for number, rung in enumerate(ladder.rungs):
        logs.append([])
        for seed in range(seeds[number] if number < len(seeds) else 1):
            place = folder / f"w{rung.width}-s{seed}"
            told(place.name)
            logs[-1].append(_trained(rung, seed, loader_of, validation, place))
    return logs


def _trained(
    rung: Size,
    seed: int,
    loader_of: Callable[[Plan], Loader],
    validation: Mapping[str, Sequence[Batch]],
    place: Path,
) -> Log:
    plan = replace(rung.plan, seed=rung.plan.seed + seed)
    every = max(rung.config.steps, 1)
    train(
        loader_of(plan),
        replace(rung.config, seed=seed),
        place,
        validation=validation,
        validate_every=every,
        checkpoint_every=max(every // 2, 1),
        keep=1,
    )
    return read_log(place)


def forecast(ladder: Ladder, logs: Sequence[Sequence[Log]], *, level: float = LEVEL) -> Forecast:
    """Return what the runs of `ladder` say of its target.

    Raises:
        ConfigurationError: fewer than three rungs, or a run without a loss at its end.
    """
    held_out = _held_out(logs)
    overall = _rungs(ladder, logs, lambda size, log: _final(size, log))
    noise = measured_noise(overall)
    target = ladder.target
    lefts = leave_one_out(overall, level=level)
    records = tuple(
        RungRecord(size.width, size.parameters, size.tokens, size.flop, size.plan.digest, rung.losses, left.band)
        for size, rung, left in zip(ladder.rungs, overall, lefts, strict=True)
    )
    return Forecast(
        plan=target.plan.digest,
        config=flat(target.config),
        flop=target.flop,
        level=level,
        law=fit_law(overall),
        noise=noise.deviation,
        noise_degrees=noise.degrees,
        is_noise_measured=noise.is_measured,
        loss=predict(overall, target.flop, level=level),
        sources={name: _of_source(ladder, logs, name, level) for name in held_out},
        held_out=held_out,
        progress=_progress(ladder, logs, level),
        rungs=records,
        caveats=tuple(_caveats(ladder, noise.is_measured)),
    )


def _size(plan: Plan, width: int, steps: int) -> Size:
    length = plan.sequences.length
    tokens = steps * plan.batch * length
    config = recipe(width, tokens, vocabulary=plan.vocabulary, length=length, batch=plan.batch)
    return Size(config, plan, _parameters(plan, width), float(flop_per_token(config.model, length)) * tokens)


def _parameters(plan: Plan, width: int) -> int:
    """Return the weights that a token meets at `width`, as the compute of a token counts them."""
    shape = recipe(width, 2 * plan.sequences.length, vocabulary=plan.vocabulary, length=plan.sequences.length, batch=1)
    return flop_per_token(shape.model, 0) // 6


def _rungs(ladder: Ladder, logs: Sequence[Sequence[Log]], loss_of: Callable[[Size, Log], float]) -> list[Rung]:
    return [
        Rung(size.flop, tuple(loss_of(size, log) for log in runs))
        for size, runs in zip(ladder.rungs, logs, strict=True)
    ]


def _final(size: Size, log: Log) -> float:
    """Return the loss on held-out text at the end, or that of the last batches where there is none.

    Raises:
        ConfigurationError: the run did not get there.
    """
    loss, _ = final_losses(log, size.config.steps)
    loss = stretch_means(log, size.config.steps).get(100) if loss is None else loss
    if loss is None:
        raise ConfigurationError(
            f"the run of width {size.width} has no loss at step {size.config.steps}: train it first"
        )
    return loss


def _held_out(logs: Sequence[Sequence[Log]]) -> dict[str, int]:
    return {str(line["source"]): int(line["predicted"]) for line in logs[0][0].validation}


def _of_source(ladder: Ladder, logs: Sequence[Sequence[Log]], name: str, level: float) -> Band:
    rungs = _rungs(ladder, logs, lambda size, log: final_losses(log, size.config.steps)[1][name])
    return predict(rungs, ladder.target.flop, level=level)


def _progress(ladder: Ladder, logs: Sequence[Sequence[Log]], level: float) -> dict[int, Band]:
    """Return the band of each stretch that is complete in every run."""
    means = [
        [stretch_means(log, size.config.steps) for log in runs] for size, runs in zip(ladder.rungs, logs, strict=True)
    ]
    shared = set.intersection(*(set(found) for runs in means for found in runs))
    return {
        percent: predict(
            [
                Rung(size.flop, tuple(found[percent] for found in runs))
                for size, runs in zip(ladder.rungs, means, strict=True)
            ],
            ladder.target.flop,
            level=level,
        )
        for percent in sorted(shared)
    }


def _caveats(ladder: Ladder, is_measured: bool) -> list[str]:
    found = []
    name, passes = epochs(ladder.target.plan)
    if passes > 1:
        found.append(f"the target reads {name!r} {passes:.2f} times, the rungs read no text twice")
    reach = ladder.target.flop / ladder.rungs[-1].flop
    if reach > 100:
        found.append(f"the target has {reach:.0f} times the compute of the largest rung")
    if not is_measured:
        found.append("no rung has two seeds: the noise of a run is assumed")
    return found
