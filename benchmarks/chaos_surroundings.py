"""Runs under other circumstances, which must change nothing: clock, locale, time zone, user, home folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.chaos_look import Outcome
from curate.store import Store

FAKETIME: Final = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1")
NOBODY: Final = 65534


def run_elsewhere(root: Path, work: Path, expected: Mapping[str, str]) -> Outcome:
    """Run once under each circumstance and compare the stores; those that are impossible here are named."""
    outcome = Outcome()
    work.chmod(0o755)
    for name, prefix, environment in _surroundings(outcome):
        store, log = work / f"elsewhere-{len(outcome.missed) + outcome.tried}", work / "elsewhere.log"
        store.mkdir()
        store.chmod(0o777)
        outcome.tried += 1
        command = [*prefix, sys.executable, "-m", "benchmarks.chaos_child", "run", str(root), str(store)]
        with log.open("wb") as out:
            status = subprocess.run(command, env={**os.environ, **environment}, stdout=out, stderr=out, check=False)
        outcome.hit += status.returncode == 0
        if status.returncode:
            outcome.failed += 1
            print(f"{name}: exit status {status.returncode}\n{log.read_text()}", flush=True)
        outcome.look(Store(store), expected, name)
    return outcome


def _surroundings(outcome: Outcome) -> Iterator[tuple[str, Sequence[str], dict[str, str]]]:
    """Yield what is possible here: its name, what stands before the command, and variables of the environment."""
    library = next((str(path) for pattern in FAKETIME for path in Path("/").glob(pattern[1:])), None)
    if library is None:
        outcome.missed.append("no libfaketime is installed: the clock was not shifted")
    else:
        shift = {"LD_PRELOAD": library, "FAKETIME": "+4000d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        yield "clock eleven years ahead", [], shift
    yield "Turkish locale", [], {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}
    yield "C locale", [], {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    yield "time zone of Kathmandu", [], {"TZ": "Asia/Kathmandu"}
    yield "other hash seed, no assertions", [], {"PYTHONHASHSEED": "12345", "PYTHONOPTIMIZE": "1"}
    if os.geteuid() == 0 and (setpriv := shutil.which("setpriv")):
        other = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        if subprocess.run([*other, "/bin/sh", "-c", f"exec {sys.executable} -c pass"], check=False).returncode:
            outcome.missed.append("other users may not run this interpreter: no other user, no read-only home")
            return
        yield "another user without a home", other, {"HOME": "/nonexistent", "USER": "nobody", "LOGNAME": "nobody"}
        yield "another user, read-only home", other, {"HOME": "/", "XDG_CACHE_HOME": "", "USER": "nobody"}
    else:
        outcome.missed.append("not root, or no setpriv: no other user, no read-only home")
