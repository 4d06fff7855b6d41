"""The training runs in a folder: what each came to, and why those that failed did.

A run is a folder with a log or a declaration. Invariant: every such folder is listed, whatever is wrong with it: what
cannot be read is a failed run with that reason. Cost: the logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainers.evidence.declaration import NAME as DECLARATION
from trainers.evidence.diary import read_diary
from trainers.evidence.judgement import judged_of, outcome_of
from trainers.log import NAME as LOG
from trainers.log import Log, read_log

DEEPEST: Final = 3
"""Folders below the one given in which runs are looked for: a ladder's rungs lie two deep."""


_OF_STORES: Final = ("shards", "caches", "quarantine")
"""Folders of a store that hold many folders and no runs."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run as an index shows it.

    `outcome` is how it ended (declared, running, stopped, finished, failed, unreadable), `reason` in words; `verdict`
    its own score where it was declared, else ""; `loss` the mean loss of its last step; `parent` the run that it
    branched from, at step `first`.
    """

    name: str
    plan: str
    outcome: str
    reason: str
    verdict: str
    done: int
    steps: int
    loss: float | None
    notes: int
    parent: str
    first: int

    @property
    def has_failed(self) -> bool:
        """Whether it ended by an error, cannot be read, or is a failure by its own declaration."""
        return self.outcome in ("failed", "unreadable") or self.verdict == "failed"


def list_runs(place: Path) -> list[ListedRun]:
    """Return the runs in `place` and up to three folders below it, by path."""
    return [_listed(folder, _name(folder, place)) for folder in sorted(_folders(place, DEEPEST))]


def run_folders(place: Path) -> list[Path]:
    """Return the folders of the runs that `list_runs` names, in its order."""
    return sorted(_folders(place, DEEPEST))


def _folders(place: Path, depth: int) -> Iterator[Path]:
    if not place.is_dir():
        return
    if any((place / name).is_file() for name in (LOG, DECLARATION)):
        yield place
    elif depth:
        for below in sorted(place.iterdir()):
            hidden = below.name.startswith(".") or below.name in _OF_STORES
            if below.is_dir() and not below.is_symlink() and not hidden:
                yield from _folders(below, depth - 1)


def _name(folder: Path, place: Path) -> str:
    return place.resolve().name if folder == place else folder.relative_to(place).as_posix()


def _listed(folder: Path, name: str) -> ListedRun:
    notes = len(read_diary(folder).notes)
    try:
        log = read_log(folder) if (folder / LOG).exists() else None
        judged = judged_of(folder, log)
        verdict = "" if judged is None else judged.verdict
        if log is None:
            return ListedRun(name, "", "declared", "it has not begun", verdict, 0, 0, None, notes, "", 0)
        return _of_log(name, log, verdict, notes)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return ListedRun(name, "", "unreadable", f"its log cannot be read: {error}", "", 0, 0, None, notes, "", 0)


def _of_log(name: str, log: Log, verdict: str, notes: int) -> ListedRun:
    outcome, reason = outcome_of(log)
    start = log.starts[-1] if log.starts else {}
    steps = start.get("config", {}).get("steps", 0)
    last = log.train[-1] if log.train else {}
    parent = log.starts[0].get("parent") if log.starts else None
    link = parent if isinstance(parent, dict) else {}
    return ListedRun(
        name,
        str(start.get("plan", "")),
        outcome,
        reason,
        verdict,
        int(last["step"]) + 1 if last else int(link.get("step", 0)),
        steps if isinstance(steps, int) else 0,
        last.get("loss"),
        notes,
        str(link.get("run", "")),
        int(link.get("step", 0)),
    )
