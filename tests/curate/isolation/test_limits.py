"""A busy machine makes no suspects: what a child waits for a processor does not count."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from curate.isolation import limits
from curate.isolation.limits import Patience
from curate.isolation.machine import LINUX, starved_seconds


def looks(monkeypatch: pytest.MonkeyPatch, share: float) -> float:
    """Return the seconds until the patience of a second is over, when the child waits for this share of the time."""
    now = 100.0
    monkeypatch.setattr(limits.time, "monotonic", lambda: now)
    patience = Patience(1.0, lambda: (now - 100.0) * share)
    while not patience.is_over():
        now += 0.05
    return now - 100.0


def test_patience_with_a_child_that_runs_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(monkeypatch, 0) == pytest.approx(1.0, abs=0.06)


def test_patience_with_a_child_that_waits_for_a_processor_lasts_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(monkeypatch, 0.75) == pytest.approx(4.0, abs=0.06)


@pytest.mark.skipif(not LINUX, reason="the scheduler's count is Linux's")
def test_starved_seconds_of_processes_that_share_a_processor_grow() -> None:
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{one}}})\nwhile True: pass"
    spinning = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    try:
        deadline = time.monotonic() + 20
        while starved_seconds(spinning[0].pid) < 0.2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def test_starved_seconds_of_a_process_that_is_gone_are_none() -> None:
    assert starved_seconds(2**22 - 1) == 0.0
