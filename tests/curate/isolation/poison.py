"""A transform that does what hostile pages do to parsers, where a text tells it to, and what tests of it share."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from curate.accounting.accountant import Step
from curate.accounting.quarantine import Verdicts
from curate.isolation.child import IDLE_STATUS
from curate.isolation.guard import GuardedShard, Isolation
from curate.isolation.limits import Limits
from curate.store import Store
from transforms.outcome import Outcome, kept
from transforms.schema import NOT_CHECKED, documents, set_columns

KEY = "5" * 64
LIMITS = Limits(0.3, 128 << 20)


def segfault(rest: str) -> None:
    """End as a parser does that writes where it must not."""
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(rest: str) -> None:
    """Wait for ever in C, holding the interpreter."""
    ctypes.PyDLL(None).pause()


def eat(rest: str) -> None:
    """Allocate without end."""
    held = []
    while True:
        held.append(os.urandom(1 << 10) * (1 << 14))


def leave(rest: str) -> None:
    """End the process without a word, as a library that calls exit()."""
    os._exit(3)


def slow(rest: str) -> None:
    """Take longer than the limit, and not ten times as long."""
    time.sleep(1.0)


def large(rest: str) -> None:
    """Take more memory than the limit for a moment, and not ten times as much."""
    held = os.urandom(1 << 10) * (300 << 10)
    time.sleep(0.2)
    del held


def fail(rest: str) -> None:
    """Raise, quoting what a list must not show."""
    raise ValueError(f"cannot bear {rest} at 0x7f12ab")


def once(rest: str) -> None:
    """Crash the first process that gets here: what is wrong with it is not the document."""
    path = Path(rest)
    if not path.exists():
        path.write_text("seen")
        segfault(rest)


def killed_once(rest: str) -> None:
    """Be killed by somebody else, the first time."""
    path = Path(rest)
    if not path.exists():
        path.write_text("seen")
        os.kill(os.getpid(), signal.SIGKILL)


def idle_once(rest: str) -> None:
    """End as a child does that nobody asks anything of, the first time."""
    path = Path(rest)
    if not path.exists():
        path.write_text("seen")
        os._exit(IDLE_STATUS)


def killed(rest: str) -> None:
    """Be killed by somebody else, every time."""
    os.kill(os.getpid(), signal.SIGKILL)


DEEDS: dict[str, Callable[[str], None]] = {
    deed.__name__: deed
    for deed in (segfault, hang, eat, leave, slow, large, fail, once, killed_once, idle_once, killed)
}


@dataclass(frozen=True, slots=True)
class Poison:
    """Writes each text in capitals, an edit of nothing; texts that begin with "do " are obeyed first.

    Drops texts that begin with "drop".
    """

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()
    isolated: ClassVar[bool] = True

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        texts: list[Any] = batch.column("text").to_pylist()
        for text in texts:
            if text.startswith("do "):
                deed, _, rest = text[3:].partition(" ")
                DEEDS[deed](rest)
        ids = batch.column("id").to_pylist()
        keep = [not text.startswith("drop") for text in texts]
        dropped = [
            {"id": identity, "transform": "Poison", "reason": "asked for"}
            for identity, stays in zip(ids, keep, strict=True)
            if not stays
        ]
        edits = [
            {"id": identity, "transform": "Poison", "reason": "case", "cut": len(text), "inserted": len(text)}
            for identity, text, stays in zip(ids, texts, keep, strict=True)
            if stays and text != text.upper()
        ]
        upper = pa.array([text.upper() for text in texts], pa.large_string())
        changed = set_columns(batch, {batch.schema.field("text"): upper})
        return kept(changed.filter(pa.array(keep, pa.bool_())) if dropped else changed, dropped=dropped, edits=edits)


@dataclass(frozen=True, slots=True)
class Threaded(Poison):
    """The same, with a thread that starts when it is loaded: it cannot be forked."""

    def ready(self) -> None:
        threading.Thread(target=threading.Event().wait, daemon=True).start()


def batch_of(texts: Sequence[str]) -> pa.RecordBatch:
    """Return documents with these texts; the id of a document is its number."""
    rows = [
        {
            "id": number.to_bytes(16, "big"),
            "text": text,
            "source": "pages",
            "origin": {"uri": "pages.jsonl", "place": "row", "offset": number, "length": 1, "part": 0},
            "licence": "unknown",
            "licence_basis": "unknown",
            "optout": NOT_CHECKED,
        }
        for number, text in enumerate(texts)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=documents())


def texts_with(count: int, deeds: Mapping[int, str]) -> list[str]:
    """Return `count` texts, those of `deeds` in their places."""
    return [deeds.get(number, f"text {number}") for number in range(count)]


def guarded(
    store: Path,
    limits: Limits = LIMITS,
    passed: Verdicts | None = None,
    shows: Callable[[str], bool] = lambda _: True,
    transform: Poison | None = None,
) -> GuardedShard:
    """Return the guarded step of one shard in `store`."""
    steps = [Step("Poison", transform or Poison())]
    guard = Isolation(limits, (), passed or {}).guard(steps)
    return GuardedShard(Store(store), KEY, "stage, shard", steps, guard, shows)


def applied(shard: GuardedShard, texts: Sequence[str]) -> Outcome:
    """Return the outcome of documents with these texts."""
    return shard.steps[0].transform.apply(batch_of(texts))


def dropped(outcome: Outcome) -> list[tuple[int, str, str | None]]:
    """Return number, reason and evidence of the documents dropped."""
    found = outcome.dropped.select(["id", "reason", "evidence"]).to_pylist()
    return [(int.from_bytes(row["id"], "big"), row["reason"], row["evidence"]) for row in found]
