"""Which licences stand behind the tokens that training reads: the plan's draws, or the caches where there is no plan.

Draws are of caches. Where all documents of a cache have one licence (by its source, or by its dataset), its tokens are
exact; else they are shared among the licences of its dataset by characters: an estimate, and marked as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viewers.estimates import is_by_source
from viewers.loading import Report
from viewers.rights import Licence, Rights, rights_of
from viewers.tokens import TRAINING, CellView


@dataclass(frozen=True, slots=True)
class Trained:
    """Tokens of one source and licence: `held` in caches to train on, `read` by the plan; `is_exact` or shared out."""

    source: str
    licence: str
    basis: str
    held: int
    read: int
    is_exact: bool

    @property
    def is_unknown(self) -> bool:
        """Whether nobody said what the licence is."""
        return Licence(self.source, self.licence, self.basis, 0, 0).is_unknown


def trained_by_licence(report: Report) -> list[Trained]:
    """Return them in the order of the caches; nothing for a result without caches to train on."""
    stages = {(stage.name, stage.key): stage for stage in report.stages}
    read = report.plan.tokens_read() if report.plan is not None else None
    found: dict[tuple[str, str, str], Trained] = {}
    for cell in report.cells:
        if cell.output == TRAINING and cell.dataset in stages:
            for one in _of_cell(report, cell, rights_of(stages[cell.dataset]), read):
                key = one.source, one.licence, one.basis
                found[key] = _joined(found[key], one) if key in found else one
    return list(found.values())


def _of_cell(report: Report, cell: CellView, rights: Rights, read: Mapping[str, Any] | None) -> list[Trained]:
    is_alone = is_by_source(report, cell)
    rows = [row for row in rights.licences if not is_alone or row.source == cell.cell]
    held = cell.description.tokens
    taken = held if read is None else int(read.get(cell.cell, 0))
    held_shares, read_shares = (_shared(amount, [row.characters for row in rows]) for amount in (held, taken))
    is_exact = len(rows) == 1
    return [
        Trained(row.source, row.licence, row.basis, h, r, is_exact)
        for row, h, r in zip(rows, held_shares, read_shares, strict=True)
    ]


def _shared(amount: int, weights: list[int]) -> list[int]:
    """Return `amount` split by `weights`, rounded down; what is left over goes to the first."""
    whole = sum(weights)
    parts = [amount * weight // whole if whole else 0 for weight in weights]
    return [parts[0] + amount - sum(parts), *parts[1:]] if parts else []


def _joined(one: Trained, other: Trained) -> Trained:
    read, held = one.read + other.read, one.held + other.held
    return Trained(one.source, one.licence, one.basis, held, read, one.is_exact and other.is_exact)
