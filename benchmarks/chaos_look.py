"""What chaos looks at afterwards: every file of a store, every attempt in its journals, and what was left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from curate.running.journal import events_of, runs_in
from curate.store import Store

UNHASHED: Final = ("runs/", "spool/")


@dataclass(slots=True)
class Outcome:
    """What was seen, added up over many stores.

    Attributes:
        tried: disturbances that were planned.
        hit: those that took place.
        different: stores whose files are not those of the undisturbed run.
        again: finished tasks that were done once more.
        left: temporary files in finished stores.
        failed: runs that ended with an error and should have survived.
        missed: what did not take place, in words.
    """

    tried: int = 0
    hit: int = 0
    different: int = 0
    again: int = 0
    left: int = 0
    failed: int = 0
    missed: list[str] = field(default_factory=list)

    def look(self, store: Store, expected: Mapping[str, str], label: str) -> None:
        """Compare a finished store with the undisturbed one."""
        found = tree(store)
        wrong = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
        if wrong:
            self.different += 1
            print(f"{label}: {len(wrong)} files differ, the first is {wrong[0]}", flush=True)
        again = {key: count for key, count in tasks_done(store).items() if count > 1}
        if again:
            print(f"{label}: {len(again)} finished tasks were done again", flush=True)
        self.again += sum(again.values()) - len(again)
        left = leftovers(store)
        if left:
            print(f"{label}: {len(left)} temporary files are left, the first is {left[0]}", flush=True)
        self.left += len(left)


def tree(store: Store) -> dict[str, str]:
    """Return name → digest of every file of a store that is hashed."""
    names = [name for name in store.names() if not name.startswith(UNHASHED)]
    return {name: store.digest(name) for name in names}


def tasks_done(store: Store) -> Counter[str]:
    """Return how often each shard's task is in the journals of a store."""
    events = (event for run in runs_in(store) for event in events_of(store, run))
    return Counter(event["key"] for event in events if event["event"] == "task" and event["key"])


def leftovers(store: Store) -> list[str]:
    """Return the spool files on this node, and the files that TensorStore or a claim has left in the store."""
    spool = store.files.spool
    files = sorted(str(path) for path in spool.rglob("*") if path.is_file()) if spool.is_dir() else []
    return files + [name for name in store.names() if name.endswith((".__lock", ".claim", ".tmp"))]
