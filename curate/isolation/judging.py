"""Verdicts on the documents of a shard: suspects are tried alone, and a budget tells poison from a function's error.

A suspect is tried in `ATTEMPTS` fresh processes at once, with `FACTOR` times the limits. If it succeeds in one, its
outcome counts and there is no verdict. What raises goes on raising: once `CONFIRMED` documents of a step raised the
same type of exception alone too, others that raise it twice in the child that is there are believed. Cost: 0.1 s for a
document that crashes or raises; 33 s for one that hangs, during which the batch goes on.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from curate.accounting.quarantine import Verdict
from curate.isolation.crew import Crew
from curate.isolation.limits import Limits
from curate.isolation.process import Fall
from curate.isolation.replies import Part
from curate.isolation.trials import Trial
from transforms.canonical import canonical_json
from transforms.pii import mask_excerpt

RAISED_AT_LEAST: Final = 10
RAISED_SHARE: Final = 100
"""An error: that more than `RAISED_AT_LEAST` documents of a step, and more than one in `RAISED_SHARE`, raise."""

FEW: Final = 4
"""An error too: that more than half of a shard's documents raise in a step, if at least so many came to it."""

CONFIRMED: Final = 3
"""Documents that must have raised alone before others that raise the same are believed."""

LOGGED: Final = 10
"""Verdicts of a shard that stand in the log one by one."""

_MESSAGE: Final = 200
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]+")
_LOG: Final = logging.getLogger("curate.accounting.quarantine")


class TooManyRaised(RuntimeError):  # noqa: N818 (what happened, as the message begins)
    """So many documents of a shard raise in one step that the step is wrong, not the documents."""


@dataclass(slots=True)
class Judge:
    """Judges the suspects of one shard.

    Attributes:
        label: stage and shard, for the log.
        shows: whether texts of a source may be shown: exceptions may quote them.
        verdicts: found so far, by document.
    """

    label: str
    limits: Limits
    shows: Callable[[str], bool]
    verdicts: dict[bytes, Verdict] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    raised: Counter[str] = field(default_factory=Counter)
    confirmed: Counter[tuple[str, str]] = field(default_factory=Counter)
    said: dict[str, str] = field(default_factory=dict)

    def believes(self, name: str, fall: Fall) -> bool:
        """Return whether others that fell alike have shown that a trial would not help."""
        return fall.reason == "raised" and self.confirmed[name, str(fall.evidence["type"])] >= CONFIRMED

    def trial(self, crew: Crew, step: int, row: int, fall: Fall) -> Trial:
        """Return the trial of a row that fell in the child at hand; it has begun."""
        return Trial(crew, step, row, fall, self.limits.alone())

    def decide(self, trial: Trial, name: str) -> Part | Verdict:
        """Return the outcome of a row that was tried alone, or the verdict on it.

        Raises:
            TooManyRaised: it raised, as too many before it.
        """
        found = trial.result()
        if isinstance(found, Part):
            return found
        if found.reason == "raised":
            self.confirmed[name, str(found.evidence["type"])] += 1
        return self.convict(trial.crew, trial.row, found, name)

    def convict(self, crew: Crew, row: int, found: Fall, name: str) -> Verdict:
        """Return the verdict on a row that fell.

        Raises:
            TooManyRaised: it raised, as too many before it.
        """
        if crew.batch is None:
            raise TypeError("no batch was taken")
        document = crew.batch.slice(row, 1).select(["id", "source", "origin"]).to_pylist()[0]
        evidence = self._evidence(found, document["source"])
        verdict = Verdict(document["id"], found.reason, name, canonical_json(evidence))
        self.verdicts[verdict.id] = verdict
        said = f"{_place(document)}: {found.reason} {verdict.evidence} {found.detail}".rstrip()
        if len(self.verdicts) <= LOGGED:
            _LOG.warning("%s, %s: quarantined document %s", self.label, name, said)
        if found.reason == "raised":
            self.said[name] = said
            self.raised[name] += 1
            most = max(RAISED_AT_LEAST, self.seen[name] // RAISED_SHARE)
            if self.raised[name] > most:
                raise self._too_many(name, f"the first {self.seen[name]:,}", most)
        return verdict

    def close(self) -> None:
        """Look at a shard's verdicts when all of it has been seen.

        Raises:
            TooManyRaised: most of its documents raised.
        """
        for name, raised in self.raised.items():
            if FEW <= self.seen[name] < 2 * raised:
                raise self._too_many(name, f"{self.seen[name]:,}", self.seen[name] // 2)

    def _too_many(self, name: str, seen: str, most: int) -> TooManyRaised:
        return TooManyRaised(
            f"{name}: {self.raised[name]} of {seen} documents raised, {most} may. That is an error of the step rather "
            f"than of documents: mend it and run again. The last was document {self.said[name]}"
        )

    def _evidence(self, fall: Fall, source: str) -> Mapping[str, Any]:
        if "message" not in fall.evidence:
            return fall.evidence
        message = mask_excerpt(_ADDRESS.sub("0x…", fall.evidence["message"]))[:_MESSAGE]
        return {"type": fall.evidence["type"], "message": message if self.shows(source) else None}


def row_of(verdict: Verdict, transform: str) -> dict[str, Any]:
    """Return the row of `DROPPED` under which `transform` drops the document."""
    reason = f"quarantined: {verdict.reason}"
    return {"id": verdict.id, "transform": transform, "reason": reason, "evidence": verdict.evidence}


def _place(document: Mapping[str, Any]) -> str:
    origin = document["origin"] or {}
    return f"{document['id'].hex()} ({origin.get('uri')}, {origin.get('place')} {origin.get('offset')})"
