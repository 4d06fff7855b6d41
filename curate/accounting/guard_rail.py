"""The guard rail of operations that take repeats away: no source loses more than the recipe allows.

It is checked when all shards are made and before the manifest commits them, so a run that stops here leaves no dataset
behind, and the ledgers of its shards to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from curate.accounting.accountant import ConservationError
from curate.committing.gathered import Receipts

Unit = Literal["documents", "characters"]


class TooManyRemovedError(ConservationError):
    """A source lost a larger share of its documents, or of its characters, than `max_removed` allows."""


def check_removed(stage: str, receipts: Receipts, max_removed: Sequence[tuple[str, str]], unit: Unit) -> None:
    """Raise where a source of `max_removed` (source, largest share as a decimal) loses more in the stage's one step.

    Raises:
        TooManyRemovedError: the message has the numbers, and where to look.
    """
    if not max_removed:
        return
    flows = receipts.statistics().get("steps", {}).get("00", {"sources": {}})["sources"]
    for source, share in max_removed:
        flow = flows.get(source, {f"{unit}_in": 0, f"{unit}_out": 0})
        had, stays = flow[f"{unit}_in"], flow[f"{unit}_out"]
        if had and Fraction(had - stays, had) > Fraction(share):
            raise TooManyRemovedError(
                f"{stage}: source {source!r} would lose {had - stays:,} of {had:,} {unit}, more than "
                f"the share {share} of max_removed. Look at its ledger: templates and shared licence headers "
                "glue unlike texts. Raise max_removed, or treat this source apart"
            )
