"""Chromium by Playwright: one for all tests of a session; each page opened in a context of its own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from playwright.sync_api import Page, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic")

Theme = Literal["light", "dark"]


def find_chromium() -> str | None:
    """Return the path of a Chromium, None when there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@dataclass
class Opened:
    """A page that was opened: `noise` is what it said on the console or threw, `requests` what it asked for."""

    page: Page
    noise: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        return self.page.evaluate(expression)

    @property
    def overflow(self) -> int:
        """By how many CSS pixels the page is wider than its window."""
        return int(self.evaluate("document.documentElement.scrollWidth - innerWidth"))


class Browser:
    """A running Chromium; a context manager."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.prepare = ""
        """A script that runs in a page before its own."""

    def __enter__(self) -> Browser:
        self.playwright = sync_playwright().start()
        self.chromium = self.playwright.chromium.launch(executable_path=self.program, args=list(OPTIONS))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.chromium.close()
        self.playwright.stop()

    def open(
        self, path: Path, width: int = 1200, theme: Theme = "light", *, scripts: bool = True, at: str = ""
    ) -> Opened:
        """Open a file in a window of `width` CSS pixels at the address `at` ("#rights"); earlier pages are closed."""
        for context in self.chromium.contexts:
            context.close()
        context = self.chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, java_script_enabled=scripts
        )
        if self.prepare:
            context.add_init_script(self.prepare)
        opened = Opened(context.new_page())
        opened.page.on("console", lambda message: opened.noise.append(message.text))
        opened.page.on("pageerror", lambda error: opened.noise.append(str(error)))
        opened.page.on("dialog", lambda dialog: opened.noise.append(dialog.message))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.goto(path.as_uri() + at)
        return opened
