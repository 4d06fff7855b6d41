"""A training run as its page shows it: read from `log.jsonl` and `notes.jsonl` of its folder, and of those before it.

A log is an input like any other: numbers that are none are left out, texts are text. Memory: the logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from curate.configuration import ConfigurationError
from trainers.evidence.diary import Note, read_diary
from trainers.evidence.judgement import Judged, judged_of
from trainers.health import Session, Spike, sessions, spikes
from trainers.history import Segment, segments
from trainers.log import Line, read_lines
from viewers.runs import LARGEST, Curve

SILENT_SECONDS: Final = 600.0
"""A run whose log has been silent for so long, and for many steps, is no longer called running."""


@dataclass(frozen=True, slots=True)
class RunPage:
    """What the page of a run shows; `now` is when it was read, in seconds since 1970.

    `train` and `validation` are the lines of the whole line of runs, each step once; `lines` are this run's own, as
    they were written. `problem` says why the line of runs begins later than it should.
    """

    name: str
    now: float
    start: Line
    segments: tuple[Segment, ...]
    problem: str
    lines: tuple[Line, ...]
    train: tuple[Line, ...]
    validation: tuple[Line, ...]
    sessions: tuple[Session, ...]
    spikes: tuple[Spike, ...]
    notes: tuple[Note, ...]
    broken_notes: int
    judged: Judged | None = None
    """How it does against what was declared and forecast of it."""

    @property
    def own(self) -> Segment:
        """The segment of this run itself."""
        return self.segments[-1]

    @property
    def done(self) -> int:
        """Updates that were made."""
        return self.train[-1]["step"] + 1 if self.train else int(self.start.get("step", 0))

    @property
    def steps(self) -> int:
        """Updates that the configuration asks for."""
        found = self.config.get("steps", 0)
        return found if isinstance(found, int) else 0

    @property
    def config(self) -> Mapping[str, Any]:
        """The flat configuration of the last start."""
        found = self.start.get("config", {})
        return found if isinstance(found, Mapping) else {}

    @property
    def heard(self) -> float:
        """When the log last told the time."""
        return max((float(line["timing"].get("time", 0)) for line in self.lines), default=0.0)

    @property
    def ended(self) -> str:
        """What ended the run: the reason in its log, "silent" where it says nothing for long; "" while it runs."""
        last = self.sessions[-1].ended if self.sessions else ""
        if last:
            return last
        recent = [float(line["timing"].get("seconds", 0)) for line in self.train[-9:]]
        patience = max(SILENT_SECONDS, 20 * max(recent, default=0.0))
        return "silent" if self.now - self.heard > patience else ""

    @property
    def marks(self) -> list[int]:
        """Steps that are marked on all curves: where a branch begins, and where somebody wrote a note."""
        return sorted({part.first for part in self.segments[1:]} | {note.step for note in self.notes})

    def curve(self, value: Callable[[Line], Any]) -> Curve:
        """Return what `value` says of each "train" line, where that is a number."""
        return curve_of(self.train, value)


def load_run_page(folder: Path, now: float) -> RunPage:
    """Return the run in `folder` at the time `now`.

    Raises:
        ConfigurationError: there is none, or its log cannot be read.
    """
    try:
        found, problem = segments(folder)
        lines = tuple(read_lines(folder))
        train = tuple(line for part in found for line in part.lines(part.log.train))
        validation = tuple(line for part in found for line in part.lines(part.log.validation))
        diary = read_diary(folder)
        judged = judged_of(folder, found[-1].log)
        start = found[-1].log.starts[-1] if found[-1].log.starts else {"timing": {}}
        made = tuple(sessions(lines))
        high = tuple(spikes(train))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{folder} holds no training run: name the folder given to curate train --run"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{folder} holds no training run that can be read: {error}") from error
    name = folder.resolve().name
    notes = tuple(sorted(diary.notes, key=lambda note: (note.step, note.time)))
    parts = (lines, train, validation, made, high, notes, len(diary.broken), judged)
    return RunPage(name, now, start, tuple(found), problem, *parts)


def curve_of(lines: Iterable[Line], value: Callable[[Line], Any]) -> Curve:
    """Return the points of `lines` where `value` gives a number of a reasonable size."""
    found = [(line["step"], value(line)) for line in lines]
    kept = [(step, float(number)) for step, number in found if _is_number(number)]
    return Curve(tuple(step for step, _ in kept), tuple(number for _, number in kept))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST
