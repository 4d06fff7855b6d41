"""Commands on a training run: `watch` writes its page, `log` feeds other places from its log."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Final

from curate.commands.numbers import not_negative

DESTINATIONS: Final = ("tensorboard", "wandb", "trackio")


def add_watch(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `watch`."""
    command.set_defaults(command=watch)
    command.add_argument("run", type=Path, metavar="RUN", help="folder of the run: log and checkpoints")
    command.add_argument(
        "--every",
        type=not_negative,
        default=15,
        metavar="SECONDS",
        help="write the page again so often, until the run ends; 0: once (default: 15)",
    )


def watch(options: argparse.Namespace) -> int:
    """Write `run.html` until the run ends; return 1 when a health check fails."""
    from viewers.run_checks import check_run
    from viewers.run_page import NAME, write_run_page
    from viewers.verdict import Verdict

    run = write_run_page(options.run, time.time(), refresh=options.every)
    print(options.run / NAME, flush=True)
    while options.every and not run.ended:
        time.sleep(options.every)
        run = write_run_page(options.run, time.time(), refresh=options.every)
    failed = [check for check in check_run(run) if check.verdict is Verdict.FAIL]
    for check in failed:
        print(f"{check.id}: {check.finding}")
    return 1 if failed else 0


def add_log(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `log`."""
    command.set_defaults(command=feed_log)
    command.add_argument("run", type=Path, metavar="RUN", help="folder of the run: log and checkpoints")
    command.add_argument("--to", choices=DESTINATIONS, required=True, help="where to: written anew from the log")
    command.add_argument("--follow", action="store_true", help="go on until the run ends")


def feed_log(options: argparse.Namespace) -> int:
    """Feed the log to another place and say how many lines had numbers."""
    from trainers.log import NAME
    from trainers.sinks import SINKS, feed

    if not (options.run / NAME).exists():
        from curate.configuration import ConfigurationError

        raise ConfigurationError(f"{options.run} has no {NAME}: name the folder that curate train --run was given")
    lines = feed(options.run, SINKS[options.to](options.run), follow=lambda: options.follow)
    print(f"{lines:,} lines of {options.run / NAME} to {options.to}")
    return 0
