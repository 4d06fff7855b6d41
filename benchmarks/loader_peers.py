"""Other loaders beside ours, on the same tokens and core: litdata, MosaicML streaming, Grain, plain numpy windows.

Each gives batches of 8 sequences of 4,096 tokens as int32, one thread, nothing prefetched, in the random order that is
the fastest for it (`benchmarks/peers/loaders.py`). None but Grain's mix draws from several components, none counts
draws exactly or gives segment ids: they have less to do than ours.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.dedup_runs import keep_to_core
from benchmarks.install_peers import SCRIPTS, Environment
from benchmarks.windows import made_cache
from curate.caches import export_cache

TOOLS: Final = {"litdata": Environment("tokens"), "mosaic": Environment("tokens"), "grain": Environment("grain")}


def peer_rates(stream: npt.NDArray[np.uint16], steps: int) -> tuple[dict[str, float], dict[str, str]]:
    """Return way → million tokens per CPU second, and the versions of what was measured.

    Raises:
        subprocess.CalledProcessError: an environment cannot be made.
    """
    rates: dict[str, float] = {}
    versions: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cache").mkdir()
        cache, _ = made_cache(folder / "cache", stream)
        export_cache(cache, folder / "litdata", "litdata")
        stream.tofile(folder / "tokens.bin")
        for tool, environment in TOOLS.items():
            environment.make()
            command = [environment.interpreter, SCRIPTS / "loaders.py", tool, folder, str(steps)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, preexec_fn=keep_to_core)
            if done.returncode:
                print(f"{tool} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                continue
            said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            for way, error in said["failed"].items():
                print(f"{way} failed: {error}", file=sys.stderr)
            rates |= said["rates"]
            versions |= said["versions"]
    return rates, {name: version for name, version in versions.items() if name != "numpy"}
