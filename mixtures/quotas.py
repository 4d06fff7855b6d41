"""Exact draw counts: how often each phase draws a sequence of each component.

The share of a component in a phase of T sequences is T·w / Σw, w its weight. Shares are rounded by largest remainder
(`mixtures.rounding`), so the counts of a phase add up to T, without caps each within 1 of its share.

Caps are solved over all phases together. Components whose shares add up to more than their cap are held at it: the cap
is split over the phases as their shares were, and what they leave free goes to the other components of each phase by
their weights; that raises shares, so this is repeated until no component exceeds its cap (water filling; each round
holds at least one more component). So a scarce component is not used up by the first phase. If a phase has no other
component left, it gets more of the scarce ones and phases that have others get less; only where no table of counts
fulfils all caps is it an error.

A positive weight whose count comes out as 0 is refused, or rounded up: these counts are fixed at 1 and the rest of the
phase is shared anew, until there is none. Or, in such a phase, all with a share below one sequence are merged to a
tail, which is drawn as one component is and gives each of its draws to another member, greater weights first; members
beyond the draws are not drawn.

Invariants: counts of a phase add up to its length; none exceeds its cap; nothing depends on the order of components but
ties, which go to the name that sorts first. Cost: phases × components for each component held at its cap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from curate.configuration import ConfigurationError
from mixtures.rounding import UNIT, round_table
from mixtures.weights import Number, exact, integer_ratio

Rare = Literal["refuse", "round up", "merge:tail"]
"""What happens to a positive weight that would never be drawn."""

RARE: Final = ("refuse", "round up", "merge:tail")
_NAMED: Final = 8  # names shown in an error


@dataclass(frozen=True, slots=True)
class AtMost:
    """How often a sequence may be seen: no component is drawn more than `epochs` times its sequences, rounded down.

    `then="redistribute"` gives what exceeds it to the other components; `then="stop"` ends the plan with the last batch
    before the first component would exceed it.
    """

    epochs: Number
    then: Literal["redistribute", "stop"] = "redistribute"

    def __post_init__(self) -> None:
        """Check both fields.

        Raises:
            ConfigurationError: `epochs` is not a positive number, or `then` is unknown.
        """
        if not exact(self.epochs, "AtMost(epochs)"):
            raise ConfigurationError("AtMost(epochs) must be more than 0: give a component the weight 0 instead")
        if self.then not in ("redistribute", "stop"):
            raise ConfigurationError(f'AtMost(then) is "redistribute" or "stop", got {self.then!r}')

    def draws(self, sequences: int) -> int:
        """Return the most draws of a component of `sequences` sequences."""
        return int(exact(self.epochs, "AtMost(epochs)") * sequences)


@dataclass(frozen=True, slots=True)
class Request:
    """What a phase asks for: `length` sequences, components by relative `weights`."""

    name: str
    length: int
    weights: Mapping[str, Fraction]


def draw_counts(requests: Sequence[Request], caps: Mapping[str, int], rare: Rare) -> list[dict[str, int]]:
    """Return, for each request, component → count, for those that are drawn at all.

    Args:
        requests: the phases; each has a positive weight.
        caps: component → the most draws over all requests; components not named have no cap.
        rare: what happens to a positive weight that would never be drawn.

    Raises:
        ConfigurationError: a positive weight would never be drawn, or the caps leave a phase short.
    """
    names = sorted({name for request in requests for name, weight in request.weights.items() if weight})
    weights = [integer_ratio([request.weights.get(name, Fraction(0)) for name in names]) for request in requests]
    limits = [caps.get(name) for name in names]
    rare_ones: set[tuple[int, int]] = set()
    while True:
        if rare == "merge:tail":
            counts = _with_tails(requests, names, weights, limits, rare_ones)
        else:
            counts = _counts(requests, names, weights, limits, rare_ones)
        missing = {
            (row, column)
            for row, weights_of_row in enumerate(weights)
            for column, weight in enumerate(weights_of_row)
            if weight and not counts[row][column]
        } - (rare_ones if rare == "merge:tail" else set())
        if not missing:
            return [{name: count for name, count in zip(names, row, strict=True) if count} for row in counts]
        if rare == "refuse":
            raise ConfigurationError(_never_drawn(requests, names, weights, missing))
        rare_ones |= missing
        if rare == "merge:tail":
            rare_ones |= _below_one(requests, weights, {row for row, _ in missing})


def _counts(
    requests: Sequence[Request],
    names: Sequence[str],
    weights: Sequence[Sequence[int]],
    caps: Sequence[int | None],
    fixed: set[tuple[int, int]],
) -> list[list[int]]:
    """Return counts by phase and component; those `fixed` are 1 and take no part in the sharing."""
    rows, columns = range(len(requests)), range(len(names))
    free = [[0 if (row, column) in fixed else weights[row][column] for column in columns] for row in rows]
    totals = [requests[row].length - sum(at == row for at, _ in fixed) for row in rows]
    once = [sum(at == column for _, at in fixed) for column in columns]
    left = [None if cap is None else cap - ones for cap, ones in zip(caps, once, strict=True)]
    short = next((row for row in rows if totals[row] < 0), None)
    if short is not None:
        raise ConfigurationError(
            f"phase {requests[short].name!r} of {requests[short].length:,} sequences is too short to draw each of its "
            f"{sum(map(bool, weights[short])):,} components once: make it longer or set small weights to 0"
        )
    for column in columns:
        if (room := left[column]) is not None and room < 0:
            raise ConfigurationError(
                f"component {names[column]!r} is needed at least once in {once[column]} phases, its cap is "
                f"{caps[column]:,} sequences: raise AtMost(epochs) or set its weight to 0"
            )
    shares, full = _shares(free, totals, left)
    table = round_table(shares, totals, left, full)
    for row in rows:
        if table.needs[row]:
            raise ConfigurationError(_short_of(requests[row], table.needs[row]))
    return [[count + ((row, column) in fixed) for column, count in enumerate(table.counts[row])] for row in rows]


def _below_one(requests: Sequence[Request], weights: Sequence[Sequence[int]], rows: set[int]) -> set[tuple[int, int]]:
    """Return what of `rows` has a share of less than one sequence."""
    return {
        (row, column)
        for row in rows
        for column, weight in enumerate(weights[row])
        if 0 < requests[row].length * weight < sum(weights[row])
    }


def _with_tails(
    requests: Sequence[Request],
    names: Sequence[str],
    weights: Sequence[Sequence[int]],
    caps: Sequence[int | None],
    merged: set[tuple[int, int]],
) -> list[list[int]]:
    """Return counts by phase and component; those `merged` in a row share what is drawn of their sum."""
    rows, columns = range(len(requests)), range(len(names))
    own = [[0 if (row, column) in merged else weights[row][column] for column in columns] for row in rows]
    tails = [
        [sum(weights[row][column] for at, column in merged if at == row) * (row == tail) for tail in rows]
        for row in rows
    ]
    wide = [[*own[row], *tails[row]] for row in rows]
    table = _counts(requests, [*names, *(f"the tail of {request.name}" for request in requests)], wide,
                    [*caps, *(None for _ in rows)], set())  # fmt: skip
    counts = [table[row][: len(names)] for row in rows]
    for row in rows:
        left = table[row][len(names) + row]
        members = sorted((column for at, column in merged if at == row), key=lambda c: (-weights[row][c], names[c]))
        while left:
            taken = [sum(counts[at][column] for at in rows) for column in members]
            free = [c for c, drawn in zip(members, taken, strict=True) if (cap := caps[c]) is None or drawn < cap]
            if not free:
                raise ConfigurationError(_short_of(requests[row], left))
            for column in free[:left]:
                counts[row][column] += 1
            left -= min(left, len(free))
    return counts


def _shares(
    weights: Sequence[Sequence[int]], totals: Sequence[int], caps: Sequence[int | None]
) -> tuple[list[list[int]], list[bool]]:
    """Return shares by phase and component in `UNIT`, and which components are held at their cap."""
    held: dict[int, list[int]] = {}
    while True:
        rows = []
        for row, (weights_of_row, total) in enumerate(zip(weights, totals, strict=True)):
            free = max(0, total * UNIT - sum(shares[row] for shares in held.values()))
            whole = sum(weight for column, weight in enumerate(weights_of_row) if column not in held) or 1
            rows.append(
                [
                    held[column][row] if column in held else free * weight // whole
                    for column, weight in enumerate(weights_of_row)
                ]
            )
        over = []
        for column, cap in enumerate(caps):
            if column not in held and cap is not None and sum(row[column] for row in rows) > cap * UNIT:
                over.append((column, cap))
        if not over:
            return rows, [column in held for column in range(len(caps))]
        held |= {column: _split(cap * UNIT, [row[column] for row in rows]) for column, cap in over}


def _split(total: int, parts: Sequence[int]) -> list[int]:
    """Return `total` split as `parts` stand to each other; what rounding leaves goes to the largest part."""
    result = [total * part // sum(parts) for part in parts]
    result[max(range(len(parts)), key=lambda at: (parts[at], -at))] += total - sum(result)
    return result


def _never_drawn(
    requests: Sequence[Request],
    names: Sequence[str],
    weights: Sequence[Sequence[int]],
    missing: set[tuple[int, int]],
) -> str:
    row = min(row for row, _ in missing)
    columns = sorted(column for at, column in missing if at == row)
    request, whole = requests[row], sum(weights[row])
    shown = [
        f"{names[column]} ({float(Fraction(request.length * weights[row][column], whole)):.2g})"
        for column in columns[:_NAMED]
    ]
    more = f" and {len(columns) - _NAMED:,} more" if len(columns) > _NAMED else ""
    return (
        f"phase {request.name!r} of {request.length:,} sequences would never draw {', '.join(shown)}{more} (in "
        'brackets the share in sequences before caps): make the phase longer, use rare="round up", or set these '
        "weights to 0"
    )


def _short_of(request: Request, lacking: int) -> str:
    return (
        f"the caps on repeats leave phase {request.name!r} {lacking:,} of its {request.length:,} sequences short: its "
        "components have no more to give. Raise AtMost(epochs), shorten the phase, weight other components, or use "
        'then="stop"'
    )
