"""Chromium over its debugging pipe: file descriptors 3 and 4, messages that end in NUL, standard library only."""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import shutil
import signal
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--remote-debugging-pipe",
)
SECONDS = 60.0


def find_chromium() -> str | None:
    """Return the path of a Chromium, None when there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Browser:
    """A running Chromium with one tab; a context manager."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.number = 0
        self.events: list[dict[str, Any]] = []
        self.rest = b""

    def __enter__(self) -> Browser:
        self.folder = tempfile.mkdtemp()
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_browser, from_browser)]  # clear of 3 and 4
        actions = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        actions += [(os.POSIX_SPAWN_DUP2, end, number) for end, number in zip(ends, (3, 4), strict=True)]
        arguments = [self.program, *OPTIONS, f"--user-data-dir={self.folder}", "about:blank"]
        self.process = os.posix_spawn(self.program, arguments, os.environ, file_actions=actions)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        try:
            self._attach()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank", session=None)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True, session=None)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log", "Security"):
            self.call(f"{domain}.enable")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.write)
        os.close(self.read)
        os.kill(self.process, signal.SIGTERM)
        os.waitpid(self.process, 0)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method: str, session: str | None = "", **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session or self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        wanted = self.number
        while True:
            answer = self._next()
            if answer.get("id") == wanted:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self.read, selectors.EVENT_READ)
            while b"\0" not in self.rest:
                assert selector.select(max(deadline - time.monotonic(), 0)), "Chromium does not answer"
                chunk = os.read(self.read, 1 << 16)
                assert chunk, "Chromium ended"
                self.rest += chunk
        message, _, self.rest = self.rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def open(self, path: Path, width: int, theme: str = "light") -> list[dict[str, Any]]:
        """Open a file in a window of `width` CSS pixels, and return what happened until it was loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())
        self.call("Runtime.evaluate", expression="new Promise(done => setTimeout(done, 200))", awaitPromise=True)
        return list(self.events)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")
