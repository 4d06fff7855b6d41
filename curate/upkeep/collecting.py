"""`curate gc`: removing leftovers, with courtesy to runs that are going on.

A run says in its journal every few seconds that it is alive; while one does, nothing is removed unless that is forced,
and then nothing that got its name after that run began. That is courtesy: what makes a removal harmless to a run is
that whatever is missing is made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from curate.configuration import ConfigurationError
from curate.receipts import committed_folders, read_manifest
from curate.running.journal import events_of, finished_recipes, runs_in
from curate.store import Store
from curate.upkeep.leftovers import Leftover

ALIVE_SECONDS: Final = 300.0
"""A run whose journal has been silent for so long is dead: it says every ten seconds that it is alive."""

LOOK_EVERY: Final = 1000
"""Files that are removed between two looks at whether a run has begun."""

_ENDS: Final = ("recipe", "stopped")


class RunningError(RuntimeError):
    """A run is going on in the store."""


@dataclass(frozen=True, slots=True)
class Alive:
    """A run that is going on: its name, when it began and when it was last heard of, in seconds since 1970."""

    run: str
    began: float
    heard: float


def alive_in(store: Store, now: Callable[[], float] = time.time) -> list[Alive]:
    """Return the runs that have not ended and were heard of in the last `ALIVE_SECONDS`."""
    return [run for run in _unended(store) if now() - run.heard < ALIVE_SECONDS]


def _unended(store: Store) -> Iterator[Alive]:
    for run in runs_in(store):
        events = list(events_of(store, run))
        if events and not any(event["event"] in _ENDS for event in events):
            yield Alive(run, float(events[0]["time"]), float(events[-1]["time"]))


def unfinished_run(store: Store) -> str | None:
    """Return the name of the last run of the store if it made no result: what it finished is named by nothing yet."""
    runs = runs_in(store)
    if not runs or any(event["event"] == "recipe" for event in events_of(store, runs[-1])):
        return None
    return runs[-1]


def results_of(store: Store) -> dict[str, str]:
    """Return the folder of each result in `store` → the name of its recipe.

    Raises:
        ConfigurationError: there is none: without a root, all would be left over.
    """
    there = {
        folder: str(manifest["name"])
        for folder in committed_folders(store)
        if (manifest := read_manifest(store, folder))["kind"] == "recipe"
    }
    if not there:
        raise ConfigurationError(f"{store.url('')} holds no result of a recipe, so nothing says what to keep")
    return there


def named_results(store: Store, wanted: Sequence[str]) -> list[str]:
    """Return the folders `wanted` if each is that of a result in `store`.

    Raises:
        ConfigurationError: one is not.
    """
    there = results_of(store)
    folders = [folder.rstrip("/").rpartition("/")[2] for folder in wanted]
    for folder in folders:
        if folder not in there:
            raise ConfigurationError(f"{store.url('')} has no result {folder!r}; it has {', '.join(there)}")
    return folders


def latest_results(store: Store) -> list[str]:
    """Return, of each recipe, the result that ran last."""
    there = results_of(store)
    finished = [event["folder"] for event in finished_recipes(store) if event["folder"] in there]
    return sorted({there[folder]: folder for folder in [*there, *finished]}.values())


def refuse_while_running(store: Store) -> None:
    """Raise while a run is going on.

    Raises:
        RunningError: the message says since when.
    """
    for run in alive_in(store):
        raise RunningError(
            f"run {run.run} is going on: it was heard of {time.time() - run.heard:.0f} s ago. Wait for it, or "
            f"{ALIVE_SECONDS:.0f} s after it was killed; --force removes what is older than its start"
        )


def older_than_runs(store: Store, found: Sequence[Leftover]) -> list[Leftover]:
    """Return what of `found` got its name before any run that is going on began."""
    alive = alive_in(store)
    began = min((run.began for run in alive), default=float("inf"))
    own = tuple(f"runs/{run.run}/" for run in alive)
    return [
        leftover for leftover in found if leftover.entry.modified < began and not leftover.name.startswith(own or "/")
    ]


def collect(store: Store, found: Sequence[Leftover], look: Callable[[Store], None] = refuse_while_running) -> None:
    """Remove `found` in its order; `look` is called now and then, and stops it by raising."""
    for number, leftover in enumerate(found):
        if number % LOOK_EVERY == 0:
            look(store)
        store.remove(leftover.name)
