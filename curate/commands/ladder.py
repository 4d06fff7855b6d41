"""`curate ladder`: small runs of the one dial on a plan, and the forecast that they make of the run on all of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from curate.commands.numbers import positive
from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.tokens import held_out, opened
from curate.configuration import ConfigurationError

if TYPE_CHECKING:
    from mixtures import Loader, Plan
    from trainers.evidence.forecast import Forecast


def add_ladder(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `ladder`."""
    command.set_defaults(command=climb)
    command.add_argument("store", metavar="DIR", help=f"store with a result that has a plan: {STORE_HELP}")
    add_store_options(command)
    command.add_argument("--recipe", metavar="FOLDER", help="result in the store (default: the one that ran last)")
    command.add_argument("--target", type=positive, required=True, metavar="W", help="width of the run to forecast")
    command.add_argument(
        "--widths",
        required=True,
        metavar="W,W,W",
        help="widths of the rungs, three or more, multiples of 64 or below that of 8, below the target's",
    )
    command.add_argument("--out", type=Path, required=True, metavar="OUT", help="folder of runs and forecast.json")
    command.add_argument(
        "--seeds", default="3", metavar="N,…", help="runs of each rung, ascending; 1 where none is named (default: 3)"
    )
    command.add_argument(
        "--held-out", type=positive, default=64, metavar="N", help="held-out sequences per source (default: 64)"
    )
    command.add_argument("--dry-run", action="store_true", help="print the sizes and train nothing")


def climb(options: argparse.Namespace) -> int:
    """Train the rungs, write `forecast.json` and `ladder.html`, and print what they say."""
    from mixtures import Loader
    from mixtures.packings import packings_of
    from trainers.evidence.forecast import NAME
    from trainers.evidence.ladder import forecast, plan_ladder, run_ladder
    from viewers.forecasts import write_ladder_page

    store = store_of(options)
    result, plan, caches = opened(store, options.recipe or last_result(store))
    ladder = plan_ladder(plan, _numbers("--widths", options.widths), options.target)
    print(ladder)
    if options.dry_run:
        return 0
    cells = caches.open()
    packings = packings_of(plan, cells)

    def loader_of(part: Plan) -> Loader:
        return Loader(part, cells, packings=packings)

    validation = held_out(plan, result.caches.get("validation"), options.held_out)
    logs = run_ladder(ladder, loader_of, validation, options.out, seeds=_numbers("--seeds", options.seeds), told=print)
    made = forecast(ladder, logs)
    made.save(options.out / NAME)
    write_ladder_page(made, options.out / "ladder.html")
    for line in told(made):
        print(line)
    print(options.out / NAME)
    print(options.out / "ladder.html")
    return 0


def told(made: Forecast) -> list[str]:
    """Return what a forecast says, in words."""
    law, band = made.law, made.loss
    origin = "between seeds" if made.is_noise_measured else "assumed"
    return [
        f"loss = {law.irreducible:.3f} + {law.scale:.4g} · FLOP^-{law.exponent:.4f}, noise of a run {made.noise:.4f} "
        f"({origin})",
        *(
            f"width {rung.width}: {sum(rung.losses) / len(rung.losses):.4f}; the other rungs say "
            f"{rung.left_out.low:.4f} to {rung.left_out.high:.4f}"
            for rung in made.rungs
        ),
        f"target: {band.low:.4f} to {band.high:.4f} with probability {band.level:.0%}, the curve says {made.curve:.4f}",
        *(f"note: {caveat}" for caveat in made.caveats),
        f"forecast {made.digest}",
    ]


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigurationError(f"{option}: numbers with commas between, as 64,128,192; got {text!r}") from None
