"""What was found of an item in a document: its verdict, how far it is covered, and where; as it stands in evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

LEAK: Final = "leak"
VARIANT: Final = "variant"
QUOTATION: Final = "quotation"
VERDICTS: Final = (LEAK, VARIANT, QUOTATION)
"""From the gravest on."""
SHOWN: Final = 5
"""Findings that evidence has at most; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An item found in a document: `verdict` is one of `VERDICTS`, or "" for a near miss.

    Of the weight `of` of the words of its `part`, `covered` is there; `spans` are code points of the document.
    """

    verdict: str
    benchmark: str
    item: int
    part: str
    covered: int
    of: int
    whole: bool
    longest: int
    numbers: int
    names: int
    missing: int
    spans: tuple[tuple[int, int], ...]

    def described(self) -> dict[str, Any]:
        """Return the finding as it stands in evidence."""
        return {
            "verdict": self.verdict or "near",
            "benchmark": self.benchmark,
            "item": self.item,
            "part": self.part,
            "coverage": [self.covered, self.of],
            "longest_run": self.longest,
            "changed": {"numbers": self.numbers, "names": self.names, "words": self.missing},
            "spans": [list(span) for span in self.spans[:SHOWN]],
        }


def gravity(finding: Finding) -> tuple[Any, ...]:
    """Return what findings are ordered by: the gravest and most covered first, then by benchmark, item and part."""
    grade = VERDICTS.index(finding.verdict) if finding.verdict else len(VERDICTS)
    return (grade, -Fraction(finding.covered, finding.of), -finding.of, finding.benchmark, finding.item, finding.part)


def joined(first: Finding, second: Finding) -> Finding:
    """Return the graver of two findings of one part of an item, with the places of both if both have a verdict."""
    better, other = sorted((first, second), key=gravity)
    return replace(better, spans=tuple(sorted({*better.spans, *(other.spans if other.verdict else ())})))


def merged_places(findings: Sequence[Finding]) -> list[list[int]]:
    """Return the places of findings, ascending and apart."""
    merged: list[list[int]] = []
    for start, end in sorted({span for finding in findings for span in finding.spans}):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as "0-3,7": first and last of each run."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def numbers_in(text: str) -> list[int]:
    """Return the numbers that `ranges` wrote."""
    pairs = [part.partition("-") for part in text.split(",") if part]
    return [number for first, _, last in pairs for number in range(int(first), int(last or first) + 1)]
