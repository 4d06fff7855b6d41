"""SIGTERM and SIGINT while training: the first one waits until the state is saved, a second one has its usual effect.

Batch systems send SIGTERM some seconds before they take a machine away. The signal is handed on when the block ends, so
whoever called sees it as if it had come then: a process without a handler ends by it, `curate train` says that it
was stopped.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class Asked:
    """Which signal asked to stop; None while none did."""

    signal: signal.Signals | None = None

    @property
    def name(self) -> str:
        """The name of the signal, empty while there is none."""
        return self.signal.name if self.signal else ""


@contextmanager
def signals_wait() -> Iterator[Asked]:
    """Note the first signal in this block instead of obeying it, and hand it on at the end of the block.

    Only the main thread of a process can do so; elsewhere nothing is changed. If the block fails, that is what is told.
    """
    asked = Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        asked.signal = signal.Signals(number)
        restore()

    for number, handler in before.items():
        if handler not in (signal.SIG_IGN, None):  # ignored, as nohup sets it, or not Python's to restore
            signal.signal(number, note)
    try:
        yield asked
    finally:
        if asked.signal is None:
            restore()
    if asked.signal is not None:
        signal.raise_signal(asked.signal)
