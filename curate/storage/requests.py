"""Requests to a remote store: how many are in flight at once, and what is tried again.

A server that is busy, or a connection that is lost, is tried again after a pause that doubles, `retries` times; then
it is an error that says so. What a lost request did is unknown, so only requests that may be repeated are made here:
reads, writes of the same bytes, and creations, whose second attempt finds what the first one left.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from curate.storage.errors import StoreError

FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 20.0

_Result = TypeVar("_Result")


class BusyError(Exception):
    """The server asks for patience, or the connection was lost: the request may be made again."""


class TakenError(Exception):
    """A file was not created, as there is one of its name."""


@dataclass(slots=True)
class Requests:
    """The requests of one process to one place: at most `limit` in flight."""

    limit: int
    retries: int
    pause: Callable[[float], None] = time.sleep
    _slots: threading.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        """Make the slots."""
        self._slots = threading.BoundedSemaphore(self.limit)

    def make(self, what: str, request: Callable[[], _Result]) -> _Result:
        """Return what `request` returns; `what` it is stands in errors.

        Raises:
            StoreError: the server stayed busy, or out of reach.
        """
        for attempt in range(self.retries + 1):
            try:
                with self._slots:
                    return request()
            except BusyError as error:
                if attempt == self.retries:
                    raise StoreError(
                        f"{what}: no answer in {attempt + 1} attempts ({error}). Is the server there? Where it says "
                        "that there are too many requests, lower the limit of requests per process and run again"
                    ) from error
            longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt)
            self.pause(longest * random.uniform(0.5, 1.0))
        raise AssertionError("the last attempt returns or raises")
