"""The log of a run: `log.jsonl`, one JSON object a line, the one truth about what happened.

    {"kind":"start","step":0,"plan":…,"config":…,"environment":…,"changed":[],"parent":null,"flop_per_token":…,
     "timing":{"time":…,"host":…,"peak_flops":…,"peak":"measured"}}
    {"kind":"train","step":17,"loss":…,"tokens":…,"predicted":…,"learning_rate":…,"gradient_norm":…,"parameter_norm":…,
     "experts":{"load":[[…],…],"overflowed":[[…],…],"entropy":[…],"max_violation":[…],"bias_norm":…},"timing":{…}}
    {"kind":"validation","step":100,"source":"books","loss":…,"predicted":…,"bits_per_byte":…,"timing":{…}}
    {"kind":"checkpoint","step":100,"state":…,"timing":{…}}
    {"kind":"stop","step":100,"timing":{"time":…,"reason":"finished"}}

The step of a "train" line is that of its batch, its loss the one before the update, `tokens` all tokens up to and
with this batch; `experts`, of a model that has them, tells by layer (and expert) how the batch was spread over them
(`trainers.balance.Balanced`). The other kinds count the updates made. A start that no stop precedes followed a kill.
Everything of the clock and the host lies under `timing`: without it, and with repeated steps taken once, the log of a
killed and resumed run equals that of an undisturbed one. Lines are appended and never changed; a killed run may leave a
part of a line, which the next start cuts off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from curate.configuration import ConfigurationError

NAME: Final = "log.jsonl"

Line = dict[str, Any]


class Writer:
    """Appends lines; each is handed to the operating system at once, `sync` puts them on the disk."""

    def __init__(self, folder: Path) -> None:
        """Open the log of `folder`, after its last whole line."""
        self._file = (folder / NAME).open("ab", buffering=0)
        self._file.truncate(_whole_lines(folder / NAME))

    def write(self, kind: str, step: int, values: Mapping[str, Any], timing: Mapping[str, Any]) -> None:
        """Append a line.

        Raises:
            ValueError: a value is not finite.
        """
        line = json.dumps({"kind": kind, "step": step, **values, "timing": timing}, allow_nan=False)
        self._file.write(line.encode() + b"\n")

    def sync(self) -> None:
        """Return when all lines are on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class Log:
    """The lines of a log by kind, ascending by step, repeated steps once (the last time counts).

    `repeated` counts the steps that were trained again after a kill, `disagreed` names those whose repetition gave
    another loss: they ran in different environments.
    """

    starts: tuple[Line, ...]
    stops: tuple[Line, ...]
    train: tuple[Line, ...]
    validation: tuple[Line, ...]
    checkpoints: tuple[Line, ...]
    repeated: int
    disagreed: tuple[int, ...]


def read_log(folder: Path) -> Log:
    """Return the log of the run in `folder`; a line that is still being written is left out.

    Raises:
        FileNotFoundError: there is none.
        ConfigurationError: a whole line is damaged.
    """
    lines = read_lines(folder)
    train = _of_kind(lines, "train")
    last = {line["step"]: line for line in train}
    others = {line["step"] for line in train if untimed(line) != untimed(last[line["step"]])}
    return Log(
        starts=tuple(_of_kind(lines, "start")),
        stops=tuple(_of_kind(lines, "stop")),
        train=_once(train),
        validation=_once(_of_kind(lines, "validation")),
        checkpoints=_once(_of_kind(lines, "checkpoint")),
        repeated=len(train) - len(last),
        disagreed=tuple(sorted(others)),
    )


def read_lines(folder: Path) -> list[Line]:
    """Return the lines of the log of `folder` as they were written; raises as `read_log`."""
    content = (folder / NAME).read_bytes()
    whole = content[: content.rfind(b"\n") + 1].splitlines()
    return [read_line(folder / NAME, number, line) for number, line in enumerate(whole, 1)]


def read_line(path: Path, number: int, content: bytes) -> Line:
    """Return line `number` of the log at `path`.

    Raises:
        ConfigurationError: it is damaged.
    """
    try:
        line = json.loads(content)
    except ValueError:
        line = None
    if not isinstance(line, dict) or "kind" not in line:
        raise ConfigurationError(
            f"{path}, line {number}, is damaged: take the file from a copy, or remove the line and what it told with it"
        )
    return line


def untimed(line: Line) -> Line:
    """Return `line` without what belongs to the clock: what must be the same in every repetition."""
    return {name: value for name, value in line.items() if name != "timing"}


def _of_kind(lines: list[Line], kind: str) -> list[Line]:
    return [line for line in lines if line["kind"] == kind]


def _once(lines: list[Line]) -> tuple[Line, ...]:
    last = {(line["step"], line.get("source", "")): line for line in lines}
    return tuple(last[key] for key in sorted(last))


def _whole_lines(path: Path) -> int:
    """Return how many bytes of the file are whole lines."""
    return path.read_bytes().rfind(b"\n") + 1
