"""`curate diff`: in which fields two compiled mixtures differ, and up to which step they read the same."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.tokens import opened

if TYPE_CHECKING:
    from mixtures import Plan

SHOWN: Final = 40
"""Fields shown; more are counted."""


def add_diff(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `diff`."""
    command.set_defaults(command=show_differences)
    command.add_argument("store", metavar="DIR", help=f"store with a result that has a plan: {STORE_HELP}")
    command.add_argument("other", metavar="OTHER", help="the store it is compared with")
    add_store_options(command)


def show_differences(options: argparse.Namespace) -> int:
    """Print how the two plans differ; return 1 unless they are the same."""
    stores = [store_of(options, place) for place in (options.store, options.other)]
    plans = [opened(store, last_result(store))[1] for store in stores]
    for line in told(*plans):
        print(line)
    return 0 if plans[0].digest == plans[1].digest else 1


def told(plan: Plan, other: Plan) -> Iterator[str]:
    """Yield what is said of two plans: fields of the first ≠ those of the other, then the steps in common."""
    from mixtures.agreement import steps_in_common

    if plan.digest == other.digest:
        yield f"the same plan, {plan.digest}"
        return
    found = plan.diff(other)
    yield from (str(difference) for difference in found[:SHOWN])
    if len(found) > SHOWN:
        yield f"… and {len(found) - SHOWN:,} fields more"
    steps = steps_in_common(plan, other)
    both = min(plan.steps, other.steps)
    yield (
        f"the first {steps:,} of {both:,} steps read the same"
        if steps
        else "their first steps already read something else"
    )
