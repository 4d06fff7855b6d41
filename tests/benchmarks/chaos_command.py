"""The command of chaos, as its tests call it: each of them in a file of its own, for they run long and side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def chaos(*arguments: str) -> dict[str, Any]:
    """Return the report of `python -m benchmarks.chaos --size tiny` with `arguments`, whose checks all passed."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.chaos", "--size", "tiny", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))
