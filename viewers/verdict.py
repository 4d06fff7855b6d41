"""What a check is, and how it can come out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from curate.configuration import ConfigurationError

IDS: Final = (
    "documents-conserved",
    "characters-conserved",
    "bytes-conserved",
    "stages-joined",
    "manifests-agree",
    "outputs-filled",
    "sources-reach-outputs",
    "no-gaps",
    "quarantine-empty",
    "licences-known",
    "optout-checked",
    "personal-data-masked",
    "deduplicated",
    "pairs-compared",
    "recall-measured",
    "benchmarks-checked",
    "caches-complete",
    "validation-apart",
    "sources-held-out",
    "plan-adds-up",
    "plan-fits-caches",
    "epochs-few",
    "shares-met",
    "runs-of-this-plan",
)
"""Ids of all checks, in order. An id keeps its meaning: what asks something else has another id."""

ANY: Final = "any"
"""Stands for every check that fails."""


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


def objections(checks: Collection[Check], asked: Collection[str]) -> Iterator[str]:
    """Yield a line for each of the checks `asked` that does not pass; `ANY` asks for those that fail, not that warn.

    A check that this result gives no occasion for (of a plan, where there is none) does not pass either.

    Raises:
        ConfigurationError: there is no check of that id.
    """
    if unknown := [name for name in asked if name != ANY and name not in IDS]:
        raise ConfigurationError(f"there is no check {unknown[0]!r}: give {ANY}, or some of {', '.join(IDS)}")
    made = {check.id: check for check in checks}
    for name in IDS:
        check = made.get(name)
        if check is None and name in asked:
            yield f"{name}: not made, for this result has nothing to check"
        elif check is not None and _objects(check, asked):
            yield f"{name}: {check.verdict.value}: {check.finding}"


def _objects(check: Check, asked: Collection[str]) -> bool:
    return (check.id in asked and check.verdict is not Verdict.PASS) or (ANY in asked and check.verdict is Verdict.FAIL)
