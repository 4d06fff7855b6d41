"""The journal of a run: times, hosts, attempts, failures. Nothing hashes it and nothing depends on it."""

from __future__ import annotations

import json
import os
import platform
import socket
import time
import uuid
from pathlib import Path
from typing import Any

from curate.store import Store


class Journal:
    """Lines of JSON under `<store>/runs/<run>/journal.jsonl`, appended by the driver."""

    def __init__(self, store: Store) -> None:
        self.run = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:6]}"
        self.folder = store.root / "runs" / self.run
        self.folder.mkdir(parents=True)
        self._file = (self.folder / "journal.jsonl").open("a", encoding="utf-8", buffering=1)
        self.write("started", host=socket.gethostname(), pid=os.getpid(), python=platform.python_version())

    def write(self, event: str, **values: Any) -> None:
        """Append one event with the time."""
        self._file.write(json.dumps({"time": time.time(), "event": event, **values}, default=str) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def finished_recipes(root: Path) -> list[dict[str, Any]]:
    """Return the "recipe" events of all journals of a store, oldest first."""
    events = []
    for path in sorted(root.glob("runs/*/journal.jsonl")):
        for line in path.read_text("utf-8", "replace").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # the last line of a killed run
            if isinstance(event, dict) and event.get("event") == "recipe":
                events.append(event)
    return sorted(events, key=lambda event: event["time"])
