"""What one look found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the examination.

    Attributes:
        name: what was looked at.
        state: "problem" where runs will fail, "warning" where they will be slow, fail late or lack a part.
        said: what was found.
        remedy: what to do; empty where nothing is.
    """

    name: str
    state: State
    said: str
    remedy: str = ""

    def line(self) -> str:
        """Return it as it is printed."""
        return f"{self.state:<8} {self.name}: {self.said}" + (f"\n         → {self.remedy}" if self.remedy else "")
