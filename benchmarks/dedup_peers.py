"""Other tools that deduplicate, each in an environment of its own with pinned versions, on the same file and core.

The scripts are in `benchmarks/peers`; an environment is made the first time it is needed (`benchmarks.install_peers`).
Settings are those that are best for the tool: what finds pairs at .8 most
surely, and of equal ones the fastest; 5-grams of lower-case words where the tool leaves that to its user.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.dedup_runs import keep_to_core
from benchmarks.install_peers import SCRIPTS, Environment

OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool in one setting, and how much faster ours is to be at least, where that is asked.

    `turns` is how often it is measured in one process, of which the fastest counts; the longer it takes, the fewer.
    """

    name: str
    environment: Environment
    script: str
    variant: str = "-"
    least_ratio: float | None = None
    turns: int = 1


RENSA: Final = Environment("rensa")
DATASKETCH: Final = Environment("datasketch")
TEXT_DEDUP: Final = Environment("text-dedup")
DATATROVE: Final = Environment("datatrove")
PEERS: Final = (
    Peer("rensa", RENSA, "rensa_dedup", "words", 3, turns=5),
    Peer("rensa, white space", RENSA, "rensa_dedup", "white space", turns=5),
    Peer("datasketch", DATASKETCH, "datasketch_dedup"),
    Peer("text-dedup", TEXT_DEDUP, "text_dedup_dedup", "unverified", 25, turns=3),
    Peer("text-dedup, verified", TEXT_DEDUP, "text_dedup_dedup", "verified"),
    Peer("datatrove", DATATROVE, "datatrove_dedup", least_ratio=60),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What the fastest turn of a tool took, in seconds of CPU and of the clock; settings; the documents it keeps."""

    cpu: float
    wall: float
    settings: str
    versions: dict[str, str]
    stays: npt.NDArray[np.bool_]


def run_peer(peer: Peer, corpus: Path, ids: Sequence[str], work: Path) -> Ran:
    """Run a tool on `corpus`, whose documents have `ids`.

    Raises:
        RuntimeError: it failed; the message has the end of what it said.
    """
    peer.environment.make()
    folder = work / peer.name.replace(" ", "-")
    folder.mkdir(parents=True)
    command = [str(peer.environment.interpreter), str(SCRIPTS / f"{peer.script}.py"), str(corpus), str(folder)]
    done = subprocess.run(
        [*command, peer.variant, str(peer.turns)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **OFFLINE, "HF_HOME": str(folder / "home")},
        preexec_fn=keep_to_core,
    )
    if done.returncode:
        raise RuntimeError(f"{peer.name} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    kept = set((folder / "kept.txt").read_text().split("\n"))
    stays = np.fromiter((name in kept for name in ids), np.bool_, len(ids))
    return Ran(said["cpu"], said["wall"], said["settings"], said["versions"], stays)
