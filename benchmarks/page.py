"""The page of a large run in a browser: how long its main thread works until it can be used, and until a search ends.

    python -m benchmarks.page [--size small|full]

The made-up page of `benchmarks.report` (200 cells, 50 stages, 1,000 reasons; "small": a tenth of each), with a step
inspector whose lists of documents fill their budget, is opened from a file in Chromium. Measured, best of five:
seconds of CPU of the page's main thread from the beginning to the end of loading, when the first window is laid out and
the script in place; those that the first search takes when it is asked at once, so that it must first make all that
waits (`viewers.waiting`); and those from then until everything waiting is there when nobody asks. Four times as much is
what a processor of a quarter of the speed needs: the clock is not used, so that a busy machine measures the same; it is
printed, too, with the browser's own brake at 4. Checks, each of which can fail: loading and search within 1 s at a
quarter of the speed, all that waits made within 4 s, bytes without samples within 3 MB, nothing on the console. The
last line is one JSON object; the exit status is 1 when a check fails. No peer makes such a page.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks.report import MB, SIZES, bytes_of_samples
from benchmarks.report_shape import shape
from viewers.loading import Report
from viewers.reads import LEAST_BYTES, LISTED_BYTES, Reads, listed_name
from viewers.report import compose

BRAKE: Final = 4
TRIES: Final = 5


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the figures as one JSON object, and return the exit status."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", choices=tuple(SIZES), default="full")
    options.add_argument("--browser", default=shutil.which("chromium"), help="a Chromium (default: the one on PATH)")
    chosen = options.parse_args(arguments)
    if chosen.browser is None:
        print("benchmarks.page needs Chromium: name one with --browser", file=sys.stderr)
        return 2
    figures, checks = measure(*SIZES[chosen.size], chosen.browser)
    for name, value in figures.items():
        print(f"{value:>12,}  {name}")
    print(
        json.dumps(
            {"name": "page", "unit": "s", "ours": figures["seconds until usable"], "peers": {}, "ratio": None}
            | {"figures": figures, "checks": checks, "versions": {"python": platform.python_version()}}
        )
    )
    return 0 if all(check[2] for check in checks.values()) else 1


def measure(cells: int, stages: int, reasons: int, browser: str) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return figures and checks of the page of a run of this shape."""
    page = compose(with_documents(shape(cells, stages, reasons))).page
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        path.write_bytes(page)
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        runs = [opened(chromium, path) for _ in range(TRIES)]
        clock = min(braked(chromium, path) for _ in range(TRIES))
        chromium.close()
    usable, search, rest = (BRAKE * min(run[place] for run in runs) for place in (0, 1, 2))
    noise = sum(run[3] for run in runs)
    without = len(page) - bytes_of_samples(page)
    figures = {
        "seconds until usable": round(usable, 2),
        "seconds of the first search": round(search, 2),
        "seconds from then until all is made": round(rest, 2),
        "seconds until usable by the clock, brake at 4": round(clock, 2),
        "bytes of the page without samples": without,
    }
    checks = {
        "usable at a quarter of the speed, s": [round(usable, 2), "≤ 1", usable <= 1],
        "first search at a quarter of the speed, s": [round(search, 2), "≤ 1", search <= 1],
        "page with documents, without samples, MB": [round(without / MB, 3), "≤ 3", without <= 3 * MB],
        "lines on the console": [noise, "= 0", noise == 0],
        "all made after loading, at a quarter of the speed, s": [round(rest, 2), "≤ 4", rest <= 4],
    }
    return figures, checks


def with_documents(report: Report) -> Report:
    """Return `report` with a step inspector that lists as many documents as its budget allows."""
    components = report.plan.components if report.plan is not None else ()
    names = sum(len(quote(listed_name(component.name))) for component in components)
    each = LISTED_BYTES // ((LEAST_BYTES + 8) * len(components) + names) if components else 0
    borders = {
        number: tuple((at * (component.tokens // each), f"{number:016x}{at:016x}") for at in range(each))
        for number, component in enumerate(components)
    }
    return replace(report, reads=Reads((), borders))


def opened(browser: Browser, path: Path) -> tuple[float, float, float, int]:
    """Return seconds of CPU of the main thread to load, to search, to make what waits, and lines on the console."""
    page, protocol, noise = _watched(browser)
    page.goto(path.as_uri())
    loaded = _busy(protocol)
    page.keyboard.press("/")
    page.keyboard.type("e")
    page.locator("#found li").first.wait_for()
    searched = _busy(protocol) - loaded
    page.context.close()
    page, protocol, more = _watched(browser)
    page.goto(path.as_uri())
    begin = _busy(protocol)
    page.locator("main noscript").first.wait_for(state="detached")
    made = _busy(protocol) - begin
    page.context.close()
    return loaded, searched, made, len(noise) + len(more)


def _watched(browser: Browser) -> tuple[Page, CDPSession, list[str]]:
    """Return a new page, its protocol with times in seconds of CPU, and what it says on the console."""
    page = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
    noise: list[str] = []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    protocol = page.context.new_cdp_session(page)
    protocol.send("Performance.enable", {"timeDomain": "threadTicks"})
    return page, protocol, noise


def braked(browser: Browser, path: Path) -> float:
    """Return seconds by the clock until the page is loaded, as the browser tells them, its brake at 4."""
    page, protocol, _ = _watched(browser)
    protocol.send("Emulation.setCPUThrottlingRate", {"rate": BRAKE})
    page.goto(path.as_uri())
    milliseconds = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    page.context.close()
    return float(milliseconds) / 1000


def _busy(protocol: CDPSession) -> float:
    metrics = protocol.send("Performance.getMetrics")["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


if __name__ == "__main__":
    sys.exit(main())
