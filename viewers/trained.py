"""Which licences stand behind the tokens that training reads: the plan's draws, or the caches where there is no plan.

Draws are of caches. Where all documents of a cache have one licence (by its source, or by its dataset), its tokens are
exact; else they are shared among licences as `viewers.read_values` does, by the tokens that the cache counts of each,
and within a licence, or where it counts none, by the characters of its dataset: an estimate, and marked as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from curate.accounting.attributes import NAME_LENGTH
from viewers.estimates import is_by_source
from viewers.loading import Report
from viewers.read_values import VALUE, Taken, apportioned, read_of_cell, taken_of
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
    read = taken_of(report.plan) if report.plan is not None else None
    found: dict[tuple[str, str, str], Trained] = {}
    for cell in report.cells:
        if cell.output == TRAINING and cell.dataset in stages:
            for one in _of_cell(report, cell, rights_of(stages[cell.dataset]), read):
                key = one.source, one.licence, one.basis
                found[key] = _joined(found[key], one) if key in found else one
    return list(found.values())


def _of_cell(report: Report, cell: CellView, rights: Rights, read: Mapping[str, Taken] | None) -> list[Trained]:
    is_alone = is_by_source(report, cell)
    rows = [row for row in rights.licences if not is_alone or row.source == cell.cell]
    found: list[Trained] = []
    for licence, held, taken in _by_licence(cell, read, {row.licence[:NAME_LENGTH] for row in rows}):
        mine = [row for row in rows if licence in (None, row.licence[:NAME_LENGTH])]
        shares = [apportioned(amount, [row.characters for row in mine]) for amount in (held, taken)]
        for row, h, r in zip(mine, *shares, strict=True):
            found.append(Trained(row.source, row.licence, row.basis, h, r, len(rows) == 1))
    return found


def _by_licence(
    cell: CellView, read: Mapping[str, Taken] | None, licences: set[str]
) -> list[tuple[str | None, int, int]]:
    """Return licence, tokens held and read; one row for all of them where the cache does not count just these."""
    held = cell.description.tokens
    taken = Taken((held,), (True,)) if read is None else read.get(cell.cell, Taken((0,), (True,)))
    values = read_of_cell(cell, "licence", taken)
    if all(one.name[0] == VALUE and one.name[1] in licences for one in values):
        return [(one.name[1], one.held, one.read) for one in values]
    return [(None, held, sum(taken.tokens))]


def _joined(one: Trained, other: Trained) -> Trained:
    read, held = one.read + other.read, one.held + other.held
    return Trained(one.source, one.licence, one.basis, held, read, one.is_exact and other.is_exact)
