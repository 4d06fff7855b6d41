"""Other places that show a run, fed from its log: TensorBoard, Weights & Biases (offline), trackio.

The log stays the one truth: a sink is written by following `log.jsonl`, never by the training loop, so it can be made
at any time, again, or not at all, and holds nothing else. A step that was made again after a kill is told once more;
the last telling counts, as in the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from curate.configuration import ConfigurationError
from trainers.health import utilisation
from trainers.log import NAME, Line, read_line

POLL_SECONDS: Final = 1.0


class Sink(Protocol):
    """Takes the numbers of a step."""

    def write(self, step: int, values: dict[str, float], at: float) -> None:
        """Take `values` by name; `at` is the time in seconds since 1970, 0 where the log has none."""
        ...

    def close(self) -> None:
        """Write out what is left."""
        ...


def feed(folder: Path, sink: Sink, *, follow: Callable[[], bool] = lambda: False) -> int:
    """Give all of the log of the run in `folder` to `sink`, and what comes as long as `follow` returns True.

    Returns how many lines had numbers. A run that has stopped is followed no further than its last line.

    Raises:
        FileNotFoundError: there is no log.
    """
    count, start = 0, Line()
    with closing(sink):
        for line in _lines(folder / NAME, follow):
            if line["kind"] == "start":
                start = line
            if values := numbers_of(line, start):
                sink.write(line["step"], values, float(line["timing"].get("time", 0)))
                count += 1
    return count


def numbers_of(line: Line, start: Line) -> dict[str, float]:
    """Return the numbers of a line by names with a slash ("train/loss")."""
    if line["kind"] == "validation":
        names = ("loss", "bits_per_byte")
        return {f"validation/{line['source']}/{name}": float(line[name]) for name in names if name in line}
    if line["kind"] != "train":
        return {}
    told = {**line, **line["timing"]}
    values = {
        f"train/{name}": float(value)
        for name, value in told.items()
        if isinstance(value, (int, float)) and name not in ("step", "time")
    }
    mfu = utilisation(start, told.get("tokens_per_second")) if start else None
    return values if mfu is None else {**values, "train/mfu": mfu}


def tensorboard(folder: Path) -> Sink:
    """Return a sink that writes `folder`/tensorboard anew.

    Raises:
        ConfigurationError: tensorboardX is not installed.
    """
    library = _library("tensorboardX")
    target = folder / "tensorboard"
    for old in target.glob("events.out.tfevents.*"):
        old.unlink()
    return _TensorBoard(library.SummaryWriter(str(target)))


def wandb(folder: Path) -> Sink:
    """Return a sink that writes an offline run of Weights & Biases into `folder`/wandb, for `wandb sync`.

    Raises:
        ConfigurationError: wandb is not installed.
    """
    library = _library("wandb")
    return _Tracker(library.init(project="curate", name=folder.resolve().name, dir=str(folder), mode="offline"))


def trackio(folder: Path) -> Sink:
    """Return a sink that writes a run of trackio, into the place where trackio keeps its projects.

    Raises:
        ConfigurationError: trackio is not installed.
    """
    library = _library("trackio")
    return _Tracker(library.init(project="curate", name=folder.resolve().name))


SINKS: Final[dict[str, Callable[[Path], Sink]]] = {"tensorboard": tensorboard, "wandb": wandb, "trackio": trackio}


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ConfigurationError(f"the package {name} is not installed: pip install {name}") from None


class _TensorBoard:
    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, step: int, values: dict[str, float], at: float) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step, walltime=at or None)

    def close(self) -> None:
        self._writer.close()


class _Tracker:
    """A run of a library with the interface of wandb."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def write(self, step: int, values: dict[str, float], at: float) -> None:
        self._run.log({**values, "step": step, "time": at})

    def close(self) -> None:
        self._run.finish()


def _lines(path: Path, follow: Callable[[], bool]) -> Iterator[Line]:
    """Yield the whole lines of `path`, and those that are appended while `follow` says so and the run goes on."""
    with path.open("rb") as file:
        rest, last, number = b"", "", 0
        while True:
            *whole, rest = (rest + file.read()).split(b"\n")
            for content in whole:
                number += 1
                line = read_line(path, number, content)
                last = line["kind"]
                yield line
            if last == "stop" or not follow():
                return
            time.sleep(POLL_SECONDS)
