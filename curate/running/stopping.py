"""Ctrl-C, and SIGTERM from a batch system: the first one stops a command in order, the second one at once.

The first raises `KeyboardInterrupt` where the command is: tasks that run are cancelled, the journal gets its last line,
and the store can be gone on with. With it the signals get back their own effect, so that a second one ends the process.
Exit status is 128 + the signal's number, as a shell has it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Whether a signal came, and which."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle the first signal."""
        self.signal = number
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt(signal.Signals(number).name)

    @property
    def status(self) -> int:
        """The exit status of a command that was stopped."""
        return 128 + (self.signal or signal.SIGINT)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Handle the signals in this block; only a process's main thread can, elsewhere nothing is changed."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    kept = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for number in SIGNALS:
            if kept[number] != signal.SIG_IGN:  # as nohup and shells in the background set it
                signal.signal(number, stop)
        yield stop
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
