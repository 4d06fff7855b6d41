"""A ladder of our own: rungs of 20 tokens per parameter, then a run of 2.8 times their most compute, forecast before.

Widths 16, 24, 32 and 40, three seeds each; width 56 is held out. All have two layers and two heads, so that size is all
that differs. Text is `DOMAINS` of ../shared/data, read at most once, in tokens of a small vocabulary, so that the head
does not outweigh the layers. The declaration of the held-out run, with the forecast's digest, stands before its first
step (the digest is printed, too). Then all runs are published, with one that fails on purpose, and the published files
alone must tell of them. Rungs train in processes.

Ladders of .03 to .05 tokens per parameter do not forecast, and were missed twice: docs/log.md, 2026-11-30.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from mixtures import Plan
    from trainers.evidence.forecast import Forecast, Point
    from trainers.evidence.ladder import Ladder

DATA: Final = Path(__file__).parents[2] / "shared" / "data" / "corpora" / "multidomain.parquet"
DOMAINS: Final[Mapping[str, int]] = {"math-latex": 2, "tech-docs": 1}
"""Domain → its weight."""

CHARACTERS: Final = 2_000_000
"""Per domain, times its weight."""

PIECE: Final = 2_000
VOCABULARY: Final = 512
LENGTH: Final = 32
BATCH: Final = 16
WIDTHS: Final = (16, 24, 32, 40)
SEEDS: Final = (3, 3, 3, 3)
TARGET: Final = 56
STEPS: Final = 3_955
HELD_OUT: Final = 100_000
"""Characters per domain."""

Checks = dict[str, tuple[Any, str, bool]]


@dataclass(frozen=True, slots=True)
class Opened:
    """What runs of the ladder read, as it lies in the store."""

    plan: Plan
    caches: Mapping[str, Any]
    validation: Mapping[str, Any]
    ladder: Ladder


def own(workers: int = 1) -> Checks:
    """Return how the largest run did against its forecast: inside, and how wide the band was."""
    from curate.run import run
    from mixtures import Loader
    from mixtures.scaled import epochs
    from trainers.config import flat
    from trainers.evidence.declaration import declare
    from trainers.evidence.forecast import scored
    from trainers.evidence.ladder import forecast, run_ladder
    from trainers.log import read_log
    from trainers.train import train

    with tempfile.TemporaryDirectory(prefix="curate-ladder-") as place:
        folder = Path(place)
        write_texts(folder / "texts")
        outputs = _outputs(folder / "texts")
        result = run(outputs, folder / "store", name="ladder", runner="local")
        opened = _opened(folder)
        plan, caches, ladder = opened.plan, opened.caches, opened.ladder
        _told(str(ladder))
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            list(pool.map(_train_rung, [folder] * len(WIDTHS), reversed(range(len(WIDTHS)))))
        logs = run_ladder(ladder, lambda part: Loader(part, caches), opened.validation, folder / "rungs", seeds=SEEDS)
        made = forecast(ladder, logs)
        made.save(folder / "forecast.json")
        hypothesis = f"The ladder holds at width {TARGET}."
        target = folder / "target"
        said = declare(target, hypothesis, plan.digest, flat(ladder.target.config), forecast=folder / "forecast.json")
        _tell_forecast(made, said.digest)
        train(
            Loader(plan, caches),
            ladder.target.config,
            target,
            validation=opened.validation,
            validate_every=STEPS,
            checkpoint_every=STEPS,
        )
        points = scored(made, read_log(target))
        _break(Loader(ladder.rungs[0].plan, caches), ladder.rungs[0].config, folder / "broken")
        found = _outsider(outputs, result, plan, folder)
    name, passes = epochs(plan)
    return {
        **_scored(made, points),
        "own ladder, passes over a component": (f"{passes:.2f} of {name}", "≤ 1", passes <= 1),
        **found,
    }


def _opened(folder: Path) -> Opened:
    from curate.run import open_result, results_in
    from curate.store import Store
    from mixtures import Plan
    from trainers.evidence.ladder import plan_ladder

    store = Store(folder / "store")
    result = open_result(store, results_in(store)[-1])
    plan = Plan.load(result.folder / "plan.json")
    validation = _validation(plan, result.caches["validation"].open())
    return Opened(plan, result.caches["training"].open(), validation, plan_ladder(plan, WIDTHS, TARGET))


def _train_rung(folder: Path, number: int) -> None:
    """Train all seeds of one rung."""
    from mixtures import Loader
    from trainers.evidence.ladder import Ladder, run_ladder

    opened = _opened(folder)
    one = Ladder((opened.ladder.rungs[number],), opened.ladder.target)
    seeds = SEEDS[number : number + 1]
    run_ladder(
        one, lambda part: Loader(part, opened.caches), opened.validation, folder / "rungs", seeds=seeds, told=_told
    )


def _scored(made: Forecast, points: Sequence[Point]) -> Checks:
    final = next(point for point in points if point.where == "held-out text")
    progress = [point.is_inside for point in points if point.where.endswith("%")]
    for point in points:
        _told(f"{point.where}: {point.loss:.4f}, forecast {point.band.low:.4f} to {point.band.high:.4f}")
    width = made.loss.half_width / final.loss
    said = f"{final.loss:.4f} in {made.loss.low:.4f} to {made.loss.high:.4f}"
    return {
        "own ladder, held-out rung": (said, "inside", final.is_inside),
        "own ladder, half-width": (round(width, 4), "≤ .03 of the loss", width <= 0.03),
        "own ladder, while it trained": (f"{sum(progress)} of {len(progress)} inside", "told", True),
    }


def _tell_forecast(made: Forecast, declared: str) -> None:
    for rung in made.rungs:
        left = rung.left_out
        losses = ", ".join(f"{loss:.4f}" for loss in rung.losses)
        _told(f"w{rung.width}: {rung.flop:.3g} FLOP, {losses}; the others say {left.low:.4f} to {left.high:.4f}")
    _told(f"{made.law}, noise {made.noise:.4f}")
    _told(f"w{TARGET}: {made.flop:.3g} FLOP, {made.loss}; forecast {made.digest}, declared {declared}")


def _break(loader: Any, config: Any, folder: Path) -> None:
    """Leave a run in `folder` that fails at its third step."""
    from trainers.train import train

    class Broken:
        digest = loader.digest

        def batch(self, step: int) -> Any:
            if step == 3:
                raise OSError("the disk of the cache is gone")
            return loader.batch(step)

    with suppress(OSError):
        train(Broken(), config, folder)


def _outsider(outputs: Any, result: Any, plan: Any, folder: Path) -> Checks:
    """Publish the mixture and all runs, and return what the published files alone say of them."""
    from mixtures.published import mixture_json
    from viewers.publication import check, publish

    caches = {name: made.open() for name, made in result.caches.items()}
    value = mixture_json(outputs.mixture, plan, caches["training"], caches["validation"])
    runs = [folder / name for name in ("rungs", "target", "broken")]
    publish(result.store, result.name, value, folder / "out", runs=runs)
    found = check(Path((folder / "out").rename(folder / "elsewhere")))
    failed = ", ".join(f"{run.name}: {run.reason}" for run in found.failed)
    names = {run.name for run in found.failed}
    return {
        "published files alone, plan": (found.plan[:16], plan.digest[:16], found.plan == plan.digest),
        "published files alone, failed runs": (
            failed,
            "broken; target if it missed",
            {"broken"} <= names <= {"broken", "target"},
        ),
        "published files alone, problems": ("; ".join(found.problems), "none", not found.problems),
    }


def write_texts(folder: Path) -> None:
    """Write `CHARACTERS` of each domain, in pieces of `PIECE`, as JSON lines below `folder`.

    Pieces, so that what is held out is a sample of all texts: with whole books the seeds of a rung differed by 1.2 %,
    by whether they had read the author of the one that was held out.
    """
    table = pq.read_table(DATA, columns=["id", "text", "domain"])
    for domain, weight in DOMAINS.items():
        texts = table.filter(pc.equal(table["domain"], domain))["text"].to_pylist()
        pieces = (text[at : at + PIECE] for text in texts for at in range(0, len(text), PIECE))
        (folder / domain).mkdir(parents=True)
        with (folder / domain / "texts.jsonl").open("w", encoding="utf-8") as file:
            for piece in islice(pieces, weight * CHARACTERS // PIECE):
                file.write(json.dumps({"text": piece}) + "\n")


def _outputs(folder: Path) -> Any:
    from curate import Outputs, deduplicate, hold_out, read_jsonl, tokenize, train_tokenizer
    from mixtures import Chunks, Mixture, Phase

    documents = deduplicate(*(read_jsonl(folder / name, source=name) for name in DOMAINS))
    training, valid = hold_out(documents, characters=HELD_OUT, per="source")
    tokenizer = train_tokenizer(training, VOCABULARY)
    mixture = Mixture(
        tokenize(training, tokenizer, by="source"),
        Phase("main", tokens=STEPS * BATCH * LENGTH, weights=DOMAINS),
        sequences=Chunks(LENGTH),
        batch=BATCH,
        seed=5,
    )
    return Outputs(mixture, validation=tokenize(valid, tokenizer, by="source", name="tokenize valid"))


def _validation(plan: Any, caches: Any) -> dict[str, Any]:
    """Return the held-out sequences of each cache in large batches."""
    from trainers.batches import pack

    documents = {name: [cache[at] for at in range(len(cache))] for name, cache in caches.items()}
    return {name: pack(found, 64, plan.sequences.length) for name, found in documents.items()}


def _told(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
