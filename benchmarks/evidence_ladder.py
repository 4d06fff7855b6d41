"""Ladders: the published one, 200 of known truth, and one of our own whose largest run is forecast before it runs.

    python -m benchmarks.evidence_ladder [--size small|full]

`checks()` gives the figures to `benchmarks.evidence`. small leaves out the own ladder, which takes some CPU minutes:
widths 64, 128 (three seeds each) and 192 on books and speeches of ../shared/data, width 256 held out; tokens and
parameters stand in the same ratio in all of them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trainers.evidence.scaling import Rung, fit_law, predict

DATA: Final = Path(__file__).parents[2] / "shared" / "data" / "corpora" / "multidomain.parquet"
PUBLISHED: Final = [Rung(2.650e19, (3.0154,)), Rung(1.726e20, (2.7809,)), Rung(1.381e21, (2.5638,))]
PUBLISHED_TARGET: Final = 2.611e24
LADDERS: Final = 200
WIDTHS: Final = (64, 128, 192)
TARGET: Final = 256
DOMAINS: Final = ("books", "speech")
CHARACTERS: Final = 1_500_000
PIECE: Final = 2_000
MOST: Final = 40_000
"""Characters of a text that are read."""

VOCABULARY: Final = 512
LENGTH: Final = 32
BATCH: Final = 4
STEPS: Final = 1_800
SEEDS: Final = (3, 3, 1)

Size = Literal["small", "full"]
Checks = dict[str, tuple[Any, str, bool]]


def checks(size: Size = "full") -> Checks:
    """Return name → (value, what is asked of it, whether it holds)."""
    found = published() | known_truth()
    if size == "full":
        found |= own() if DATA.exists() else {"own ladder": (f"{DATA} is absent", "measured", False)}
    return found


def published() -> Checks:
    """Return the checks of the published rungs (2.650e19 to 1.381e21 FLOP), with E fixed at 1.5 and free."""
    fixed = fit_law(PUBLISHED, 1.5).at(PUBLISHED_TARGET)
    free = predict(PUBLISHED, PUBLISHED_TARGET)
    said = f"{free.low:.3f} to {free.high:.3f}"
    return {
        "published rungs, E = 1.5": (round(fixed, 4), "2.041 ± .002", abs(fixed - 2.041) <= 0.002),
        "published rungs, E free": (said, "holds 2.041", free.holds(2.041)),
        "published rungs, width": (said, "⊇ 2.00 to 2.09", free.low <= 2.00 and free.high >= 2.09),
    }


def known_truth() -> Checks:
    """Return how many of 200 ladders of known truth have the next run in their band of 80 %."""
    rng = np.random.default_rng(13)
    hits = 0
    for number in range(LADDERS):
        rungs, run = _ladder(rng, 3 + number % 3)
        flop = rungs[-1].flop * (10, 100)[number % 2]
        hits += predict(rungs, flop).holds(run(flop))
    share = hits / LADDERS
    return {"bands of 80 % that hold": (share, ".70 to .90", 0.7 <= share <= 0.9)}


def _ladder(rng: np.random.Generator, count: int) -> tuple[list[Rung], Callable[[float], float]]:
    """Return rungs over two decades, the first with three seeds, and what makes further runs."""
    least, exponent, scale = rng.uniform(1.2, 2.2), rng.uniform(0.05, 0.25), rng.uniform(0.8, 2.5)
    noise = math.exp(rng.uniform(math.log(0.001), math.log(0.01)))
    flops = 1e15 * 10.0 ** np.linspace(0, 2, count)

    def run(flop: float) -> float:
        return float(least + scale * (flop / 1e15) ** -exponent + noise * rng.standard_normal())

    rungs = [Rung(float(f), tuple(run(f) for _ in range(3 if n == 0 else 1))) for n, f in enumerate(flops)]
    return rungs, run


def own() -> Checks:
    """Return how the largest run did against its forecast: inside, and how wide the band was."""
    from curate.run import run
    from mixtures import Loader, Plan
    from trainers.evidence.forecast import scored
    from trainers.evidence.ladder import forecast, plan_ladder, run_ladder
    from trainers.log import read_log
    from trainers.train import train

    with tempfile.TemporaryDirectory(prefix="curate-ladder-") as place:
        folder = Path(place)
        write_texts(folder / "texts")
        outputs = _outputs(folder / "texts")
        result = run(outputs, folder / "store", name="ladder", runner="local")
        plan = Plan.load(result.folder / "plan.json")
        caches = result.caches["training"].open()
        validation = _validation(plan, result.caches["validation"].open())
        ladder = plan_ladder(plan, WIDTHS, TARGET)
        logs = run_ladder(
            ladder, lambda part: Loader(part, caches), validation, folder / "rungs", seeds=SEEDS, told=_told
        )
        made = forecast(ladder, logs)
        made.save(folder / "forecast.json")
        _told(f"w{TARGET}: {made.loss}, digest {made.digest}")
        train(
            Loader(plan, caches),
            ladder.target.config,
            folder / "target",
            validation=validation,
            validate_every=STEPS,
            checkpoint_every=STEPS,
        )
        points = scored(made, read_log(folder / "target"))
        _break(Loader(ladder.rungs[0].plan, caches), ladder.rungs[0].config, folder / "broken")
        found = _outsider(outputs, result, plan, folder)
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
        **found,
    }


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
    return {
        "published files alone, plan": (found.plan[:16], plan.digest[:16], found.plan == plan.digest),
        "published files alone, failed runs": (failed, "broken", [run.name for run in found.failed] == ["broken"]),
        "published files alone, problems": ("; ".join(found.problems), "none", not found.problems),
    }


def write_texts(folder: Path) -> None:
    """Write `CHARACTERS` of each domain, in pieces of `PIECE`, as JSON lines below `folder`.

    Pieces, so that what is held out is a sample of all texts: with whole books the seeds of a rung differed by 1.2 %,
    by whether they had read the author of the one that was held out.
    """
    table = pq.read_table(DATA, columns=["id", "text", "domain"])
    for domain in DOMAINS:
        texts = table.filter(pc.equal(table["domain"], domain))["text"].to_pylist()
        pieces = (text[at : at + PIECE] for text in texts for at in range(0, min(len(text), MOST), PIECE))
        (folder / domain).mkdir(parents=True)
        with (folder / domain / "texts.jsonl").open("w", encoding="utf-8") as file:
            for piece in islice(pieces, CHARACTERS // PIECE):
                file.write(json.dumps({"text": piece}) + "\n")


def _outputs(folder: Path) -> Any:
    from curate import Outputs, deduplicate, hold_out, read_jsonl, tokenize, train_tokenizer
    from mixtures import Chunks, Mixture, Phase

    documents = deduplicate(*(read_jsonl(folder / name, source=name) for name in DOMAINS))
    training, valid = hold_out(documents, characters=60_000, per="source")
    tokenizer = train_tokenizer(training, VOCABULARY)
    tokens = STEPS * BATCH * LENGTH
    mixture = Mixture(
        tokenize(training, tokenizer, by="source"),
        Phase("main", tokens=tokens, weights={"books": 2, "speech": 1}),
        sequences=Chunks(LENGTH),
        batch=BATCH,
        seed=5,
    )
    return Outputs(mixture, validation=tokenize(valid, tokenizer, by="source", name="tokenize valid"))


def _validation(plan: Any, caches: Any) -> dict[str, Any]:
    """Return 512 sequences of each held-out cache in large batches."""
    from trainers.batches import pack

    documents = {name: [cache[at] for at in range(len(cache))] for name, cache in caches.items()}
    return {name: pack(found, 64, plan.sequences.length)[:8] for name, found in documents.items()}


def _told(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Print each check, and all of them as JSON; return 1 when one fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=("small", "full"), default="small")
    found = checks(parser.parse_args().size)
    for name, (value, asked, holds) in found.items():
        print(f"{'holds' if holds else 'FAILS'}  {name}: {value} (asked: {asked})")
    print(json.dumps({"name": "evidence_ladder", "checks": {name: list(found[name]) for name in found}}))
    return 0 if all(holds for _, _, holds in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
