"""A forecast and logs for tests of what is said of runs: nothing is trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from mixtures.plan import Plan
from mixtures.plan_fields import Component, Segment
from mixtures.sequences import Chunks
from trainers.config import flat
from trainers.evidence.forecast import Forecast
from trainers.evidence.ladder import Ladder, Size, forecast, plan_ladder
from trainers.log import Log

WIDTHS = (64, 128, 192)


def a_plan(steps: int = 1000, batch: int = 4, length: int = 16, seed: int = 3) -> Plan:
    """Return a plan of two phases over two components that are larger than what it draws."""
    half = steps * batch // 2
    segments = [
        Segment("main", half * length, {"a": 3, "b": 1}, {"a": half * 3 // 4, "b": half - half * 3 // 4}, half, half),
        Segment("last", half * length, {"a": 1, "b": 1}, {"a": half // 2, "b": half - half // 2}, half, half),
    ]
    components = tuple(Component(name, name * 64, 100_000 * length, 100_000) for name in "ab")
    return Plan(seed, batch, Chunks(length), "t" * 64, 64, 0, components, tuple(segments))


def a_ladder(steps: int = 1000) -> Ladder:
    """Return the ladder of the plan with the width 256 as its target."""
    return plan_ladder(a_plan(steps), WIDTHS, 256)


def a_log(
    size: Size,
    offset: float = 0.0,
    stop: int | None = None,
    reason: str | None = "finished",
    sources: tuple[str, ...] = ("books", "code"),
) -> Log:
    """Return the log of a run of `size` whose losses follow a law of compute and of progress, up to step `stop`."""
    steps = size.config.steps
    done = steps if stop is None else stop
    end = 1.5 + 4.0 * (size.flop / 1e9) ** -0.15 + offset
    start = {"kind": "start", "step": 0, "plan": size.plan.digest, "config": flat(size.config), "timing": {}}
    train = [
        {"kind": "train", "step": s, "loss": end + 2 * (1 - s / steps) ** 3, "gradient_norm": 1.0, "tokens": s}
        for s in range(done)
    ]
    validation = [
        {"kind": "validation", "step": steps, "source": name, "loss": end + 0.1 * at, "predicted": 1000}
        for at, name in enumerate(sources)
        if done == steps
    ]
    stops = [] if reason is None else [{"kind": "stop", "step": done, "timing": {"reason": reason}}]
    return Log((start,), tuple(stops), tuple(train), tuple(validation), (), 0, ())


def seeded(log: Log, seed: int) -> Log:
    """Return `log` as that of another seed."""
    return replace(log, starts=({**log.starts[0], "config": {**log.starts[0]["config"], "seed": seed}},))


def made() -> tuple[Ladder, Forecast]:
    """Return a ladder and its forecast, three seeds of the smallest rung."""
    ladder = a_ladder()
    first = [a_log(ladder.rungs[0], offset) for offset in (-0.005, 0.0, 0.005)]
    return ladder, forecast(ladder, [first, *([a_log(rung)] for rung in ladder.rungs[1:])])


def write_log(folder: Path, log: Log) -> Path:
    """Write `log` to `folder` as a run would have."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [*log.starts, *log.train, *log.validation, *log.stops]
    (folder / "log.jsonl").write_text(
        "".join(json.dumps({**line, "timing": line.get("timing", {})}) + "\n" for line in lines)
    )
    return folder
