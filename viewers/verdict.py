"""What a check is, and how it can come out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """How a check came out; "warn" is for what a reader should know and may be intended."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its stable `id`, what it asks, how it came out, and the numbers behind."""

    id: str
    question: str
    verdict: Verdict
    finding: str


def verdict_of(wrong: object, otherwise: Verdict = Verdict.FAIL) -> Verdict:
    """Return `otherwise` if there is anything in `wrong`, else that the check passes."""
    return otherwise if wrong else Verdict.PASS
