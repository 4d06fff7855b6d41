"""Jobs for tests of runners: each item's unit says what its task does to its worker."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curate.running.jobs import Item, Resources
from curate.store import Store
from tests.waiting import wait_for


@dataclass(frozen=True)
class Acting:
    """A job whose tasks do as their unit says, and mark in `folder` that they were there."""

    folder: Path
    name: str = "acting"
    resources: Resources = field(default_factory=Resources)
    pickled: tuple[Any, ...] = field(default=())

    @property
    def store(self) -> Store:
        return Store(self.folder)

    def run(self, item: Item) -> Any:
        mark(self.folder, f"ran {item.label}")
        what, _, value = str(item.unit).partition(" ")
        return ACTIONS[what](self, item, value)


class Counted:
    """Marks in `folder` each time that it is pickled and unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getstate__(self) -> dict[str, Any]:
        mark(self.folder, "pickled")
        return {"folder": self.folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.folder = state["folder"]
        mark(self.folder, f"unpickled in {os.getpid()}")


def mark(folder: Path, text: str) -> None:
    with (folder / "marks").open("a") as file:
        file.write(f"{text}\n")


def marks(folder: Path, beginning: str = "") -> list[str]:
    with suppress(FileNotFoundError):
        return [line for line in (folder / "marks").read_text().splitlines() if line.startswith(beginning)]
    return []


def times(job: Acting, what: str, item: Item) -> int:
    """Return how often `what` happened to an item, as the marks say."""
    return marks(job.folder).count(f"{what} {item.label}")


def _crash(job: Acting, item: Item, value: str) -> Any:
    """Die `value` times, with words on standard error, each time when the driver has told `Told` that it began."""
    if times(job, "ran", item) <= int(value):
        print(f"last words of {item.label}", file=sys.stderr, flush=True)
        wait_for(lambda: times(job, "began", item) == times(job, "ran", item))
        os.kill(os.getpid(), 9)
    return 7


def _sleep(job: Acting, item: Item, value: str) -> Any:
    mark(job.folder, f"sleeps {item.label}")
    until = time.monotonic() + float(value)
    while time.monotonic() < until:
        time.sleep(0.02)
    mark(job.folder, f"woke {item.label}")
    return 1


def _stubborn(job: Acting, item: Item, value: str) -> Any:
    """Work where no exception of Python comes in, for a minute or so at a `value` of 10**8."""
    mark(job.folder, f"sleeps {item.label}")
    hashlib.pbkdf2_hmac("sha256", b"", b"", int(value))
    mark(job.folder, f"woke {item.label}")
    return 1


def _raise(job: Acting, item: Item, value: str) -> Any:
    error = ValueError(value)
    error.add_note("record 12 at byte 3400")
    print("said before it raised", flush=True)
    raise error


def _late(job: Acting, item: Item, value: str) -> Any:
    """Raise when the driver has heard that the item `value` began, and it is at work."""
    wait_for(lambda: {f"began {value}", f"sleeps {value}"} <= set(marks(job.folder)))
    raise ValueError("late")


def _exit(job: Acting, item: Item, value: str) -> Any:
    sys.exit(int(value))


def _say(job: Acting, item: Item, value: str) -> Any:
    print(f"out {value}")
    print(f"err {value}", file=sys.stderr)
    return 1


def _eat(job: Acting, item: Item, value: str) -> Any:
    """Use so many MB for a moment."""
    held = bytearray(int(value) << 20)
    for at in range(0, len(held), 4096):
        held[at] = 1
    return len(held) >> 20


def _number(job: Acting, item: Item, value: str) -> Any:
    return int(value)


ACTIONS = {
    "crash": _crash,
    "sleep": _sleep,
    "stubborn": _stubborn,
    "raise": _raise,
    "late": _late,
    "exit": _exit,
    "say": _say,
    "eat": _eat,
    "number": _number,
}


def items(*units: str) -> list[Item]:
    """Return items with these units, labelled "item 0" and so on."""
    return [Item(f"{number:064x}", f"item {number}", unit, 10) for number, unit in enumerate(units)]


class Told:
    """A log that remembers; in `folder`, if there is one, it marks which tasks began, so that they can wait for it."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.events: list[dict[str, Any]] = []
        self.kept: dict[str, str] = {}

    def write(self, event: str, **values: Any) -> None:
        self.events.append({"event": event, **values})
        if event == "began" and self.folder is not None:
            mark(self.folder, f"began {values['label']}")

    def keep(self, name: str, text: str) -> str:
        self.kept[name] = text
        return name

    def of(self, *kinds: str) -> Iterator[dict[str, Any]]:
        return (event for event in self.events if event["event"] in kinds)


def labels(attempts: Sequence[Any]) -> list[str]:
    return sorted(attempt.item.label for attempt in attempts)
