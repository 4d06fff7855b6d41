"""Progress of long work: one line that rewrites itself on a terminal, plain lines now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

TERMINAL_SECONDS: Final = 0.2
LOG_SECONDS: Final = 10.0
PREPARING: Final = "preparing what the recipe names: lists, models and benchmarks are read, once for this machine"


class Progress:
    """Counts the finished tasks of one stage and shows rates and time left."""

    def __init__(
        self,
        title: str,
        tasks: int | None,
        total_bytes: int,
        done: int = 0,
        stream: TextIO | None = None,
        words: tuple[str, str] = ("shards", "documents"),
    ) -> None:
        """`done` of the `tasks` were there before; they count neither for rates nor as work.

        Where nobody knows how many `tasks` there are (None), what they are made of is counted, and no time is left.
        `words` are what tasks make and what they are made of.
        """
        self.words = words
        self.title, self.tasks, self.total_bytes, self.reused = title, tasks, total_bytes, done
        self.stream = stream or sys.stderr
        self.done = self.documents = self.bytes = self.shown_done = 0
        self.began = self.shown = time.monotonic()
        self.interval = TERMINAL_SECONDS if self.stream.isatty() else LOG_SECONDS

    def advance(self, documents: int, size: int) -> None:
        """Count one task that read `documents` and `size` bytes."""
        self.done += 1
        self.documents += documents
        self.bytes += size
        now = time.monotonic()
        if now - self.shown >= self.interval:
            self.shown = now
            self._show(end="")

    def finish(self) -> None:
        """Show the last state."""
        if self.stream.isatty() or not self.done or self.shown_done != self.done:
            self._show(end="\n")

    def _show(self, end: str) -> None:
        self.shown_done = self.done
        line = self.line(time.monotonic() - self.began)
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[2K{line}{end}")
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def line(self, seconds: float) -> str:
        """Return the state after `seconds` of work in words."""
        seconds = max(seconds, 1e-3)
        open_tasks = (self.tasks or 0) - self.reused
        if self.tasks is None:
            parts = [f"{self.title}: {self.documents:,} {self.words[1]}"]
        else:
            parts = [f"{self.title}: {self.done + self.reused}/{self.tasks} {self.words[0]}"]
        if self.reused:
            parts.append(f"{self.reused} reused")
        if self.documents:
            parts.append(f"{self.documents / seconds:,.0f} {self.words[1]}/s")
        if self.bytes:
            parts.append(f"{self.bytes / seconds / 1e6:,.1f} MB/s")
        if 0 < self.done < open_tasks:
            share = self.bytes / self.total_bytes if self.bytes and self.total_bytes else self.done / open_tasks
            parts.append(f"{clock(seconds * (1 - share) / max(share, 1e-9))} left")
        else:
            parts.append(f"{clock(seconds)}")
        return ", ".join(parts)


def say(text: str, stream: TextIO | None = None) -> None:
    """Write a line that stays, in place of the one that rewrites itself on a terminal."""
    stream = stream or sys.stderr
    stream.write(f"\r\x1b[2K{text}\n" if stream.isatty() else f"{text}\n")
    stream.flush()


@contextmanager
def waiting(text: str, seconds: float = 3.0, stream: TextIO | None = None) -> Iterator[None]:
    """Say `text` when what is done within takes longer than `seconds`."""
    timer = threading.Timer(seconds, say, (text, stream))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def clock(seconds: float) -> str:
    """Return a duration as "4.2 s", "3:07" or "2:05:00"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
