"""The journal of a run: times, hosts, attempts, failures. Nothing hashes it and nothing depends on it."""

from __future__ import annotations

import json
import os
import platform
import socket
import time
import uuid
from typing import Any

from curate.store import Store


class Journal:
    """Lines of JSON under `<store>/runs/<run>/journal.jsonl`, added by the driver."""

    def __init__(self, store: Store) -> None:
        self.run = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:6]}"
        self._file = store.appender(f"runs/{self.run}/journal.jsonl")
        self.write("started", host=socket.gethostname(), pid=os.getpid(), python=platform.python_version())

    def write(self, event: str, **values: Any) -> None:
        """Append one event with the time."""
        line = json.dumps({"time": time.time(), "event": event, **values}, default=str)
        self._file.write(line.encode("utf-8", "surrogatepass") + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def finished_recipes(store: Store) -> list[dict[str, Any]]:
    """Return the "recipe" events of all journals of a store, oldest first."""
    events = []
    for folder in store.folders("runs"):
        for line in store.appended(f"{folder}/journal.jsonl"):
            try:
                event = json.loads(line)
            except ValueError:
                continue  # the last line of a killed run
            if isinstance(event, dict) and event.get("event") == "recipe":
                events.append(event)
    return sorted(events, key=lambda event: event["time"])
