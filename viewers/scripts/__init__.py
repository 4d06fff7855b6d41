"""The script of a page: small files of plain JavaScript, put together in a fixed order.

Invariants: the same bytes for every page, admitted by their hash (`viewers.frame`); no request, no eval, no markup but
the page's own (`viewers.waiting`). A page is whole without it: it searches, sorts, copies, moves, works the step
inspector out, and lets what is far down wait.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from viewers.visible import HIDDEN

PARTS: Final = ("arithmetic", "data", "sorting", "travel", "search", "copying", "steps", "waiting", "arrival")


@cache
def script() -> str:
    """Return the whole script."""
    folder = files("viewers.scripts")
    parts = [(folder / f"{name}.js").read_text("utf-8") for name in PARTS]
    return "".join(["(() => {\n'use strict';\n", _hidden(), *parts, "})();\n"])


def _hidden() -> str:
    """Return the characters that no reader could see, as `viewers.visible` has them, for names in the inspector."""
    pattern = "".join(rf"\u{{{ord(c):x}}}" if ord(c) > 126 or ord(c) < 32 else c for c in HIDDEN.pattern[:-1])
    return f"const HIDDEN = /{pattern}/gu;\n"
