"""How well `MaskPII` finds each kind: the card of a benchmark, kept beside the code for reports to show.

`python -m benchmarks.pii_cases --write` makes it; a test sees that it is what the present code gives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from transforms.pii.mask import MaskPII

CARD: Final = Path(__file__).with_name("measured.json")
"""The card's file."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Spans of one kind on generated cases: found rightly, found where there is none or not exactly, and missed."""

    right: int
    wrong: int
    missed: int

    def precision(self) -> Fraction:
        """Return the share of what was found that is right."""
        return Fraction(self.right, max(1, self.right + self.wrong))

    def recall(self) -> Fraction:
        """Return the share of what is there that was found."""
        return Fraction(self.right, max(1, self.right + self.missed))


def measured() -> dict[str, Measured]:
    """Return the card: kind ("email", "iban", "ipv4", "ipv6", "payment_card", "phone", "secret") → counts."""
    kinds = json.loads(CARD.read_text("utf-8"))["kinds"]
    return {kind: Measured(**counts) for kind, counts in kinds.items()}


def card_text(seed: int, cases: int, kinds: Mapping[str, Measured]) -> str:
    """Return the content of the card."""
    content = {
        "cases": cases,
        "kinds": {kind: asdict(counts) for kind, counts in sorted(kinds.items())},
        "seed": seed,
        "version": MaskPII.version,
    }
    return json.dumps(content, indent=1) + "\n"
