"""The diary of a run: notes that are added and never changed, each bound to the one before.

    <run>/notes.jsonl
    {"before":"…","author":"…","step":1200,"text":"…","time":1764540245}

A line is canonical JSON; `before` is the digest of the line before it (of nothing in the first one), so a line that was
changed, put in or taken out is found; lines cut off at the end are not, unless the last digest was quoted elsewhere.
Cost: the notes.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from curate.configuration import ConfigurationError
from curate.digests import digest_bytes
from curate.store import json_line
from trainers.log import NAME as LOG
from trainers.log import read_log

NAME: Final = "notes.jsonl"
LONGEST: Final = 20_000
"""Code points of a note."""


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody wrote about a step, and when, in seconds since 1970."""

    step: int
    text: str
    author: str
    time: int


@dataclass(frozen=True, slots=True)
class Diary:
    """The notes as they stand, in the order of writing; `broken` has the numbers of lines that are not as written."""

    notes: tuple[Note, ...] = ()
    broken: tuple[int, ...] = ()
    last: str = ""
    """Digest of the last line, to quote."""


def write_note(run: Path, step: int, text: str, author: str, *, now: float | None = None) -> Note:
    """Append a note to the diary of `run`.

    Raises:
        ConfigurationError: `run` is no folder, the step is negative or one that the run has not come to, the note is
            empty or too long, or the log is damaged.
    """
    if not run.is_dir():
        raise ConfigurationError(f"{run} is no folder of a run: name the folder that curate train --run was given")
    if step < 0 or not text.strip() or len(text) > LONGEST:
        raise ConfigurationError(
            f"a note has a step from 0 and 1 to {LONGEST:,} characters, got step {step}, {len(text)}"
        )
    if step > (last := _last_step(run)):
        raise ConfigurationError(f"{run} has come to step {last:,}, there is nothing to note of step {step:,}")
    written = int(time.time() if now is None else now)
    note = Note(step, text.encode("utf-8", "replace").decode(), author.encode("utf-8", "replace").decode(), written)
    with (run / NAME).open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        lines = _lines(file.read())
        fields = {"step": note.step, "text": note.text, "author": note.author, "time": note.time}
        file.write(json_line({**fields, "before": digest_bytes(lines[-1]) if lines else ""}))
        file.flush()
        os.fsync(file.fileno())
    return note


def read_diary(run: Path) -> Diary:
    """Return the notes of `run`; none where nobody wrote any. A line that cannot be read counts as broken."""
    try:
        lines = _lines((run / NAME).read_bytes())
    except FileNotFoundError:
        return Diary()
    notes, broken, before = [], [], ""
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
            note = Note(int(value["step"]), str(value["text"]), str(value["author"]), int(value["time"]))
        except (ValueError, KeyError, TypeError):
            broken.append(number)
        else:
            notes.append(note)
            if value.get("before") != before:
                broken.append(number)
        before = digest_bytes(line)
    return Diary(tuple(notes), tuple(broken), before)


def _last_step(run: Path) -> int:
    """Return the updates that the log of `run` tells of, 0 before there is one."""
    if not (run / LOG).exists():
        return 0
    log = read_log(run)
    done = [int(line["step"]) for line in (*log.starts, *log.validation, *log.checkpoints)]
    return max([*done, *(int(line["step"]) + 1 for line in log.train)], default=0)


def _lines(content: bytes) -> list[bytes]:
    return content.splitlines()
