"""Waiting for what another process or thread does: until it has happened, however long a busy machine takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")


def wait_for(what: Callable[[], Seen], seconds: float = 240.0) -> Seen:
    """Return the first true value of `what`; a test that waits longer than `seconds` fails."""
    until = time.monotonic() + seconds
    while not (seen := what()):
        assert time.monotonic() < until, f"nothing after {seconds:.0f} s"
        time.sleep(0.05)
    return seen
