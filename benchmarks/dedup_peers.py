"""Other tools that deduplicate, each in an environment of its own with pinned versions, on the same file and core.

The scripts are in `benchmarks/peers`; an environment is made in `.venv-peer-…` beside the repository's own the first
time it is needed (git ignores these). Settings are those that are best for the tool: what finds pairs at .8 most
surely, and of equal ones the fastest; 5-grams of lower-case words where the tool leaves that to its user.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.dedup_runs import keep_to_core

ROOT: Final = Path(__file__).parents[1]
SCRIPTS: Final = Path(__file__).parent / "peers"
OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment: its name, what is installed, and which Python it needs, if not the one that runs this."""

    name: str
    packages: tuple[str, ...]
    python: str = ""

    @property
    def interpreter(self) -> Path:
        """Its Python."""
        return ROOT / f".venv-peer-{self.name}" / "bin" / "python"

    def make(self) -> None:
        """Make it, unless it is there.

        Raises:
            RuntimeError: no such Python is found.
            subprocess.CalledProcessError: it cannot be made; no network, most likely.
        """
        marker = self.interpreter.parents[1] / "packages.txt"
        if marker.exists() and marker.read_text() == "\n".join(self.packages):
            return
        print(f"making {self.interpreter.parents[1].name}", file=sys.stderr)
        python = find_python(self.python)
        subprocess.run([python, "-m", "venv", "--clear", str(self.interpreter.parents[1])], check=True)
        subprocess.run([str(self.interpreter), "-m", "pip", "install", "-qq", *self.packages], check=True)
        marker.write_text("\n".join(self.packages))


def find_python(release: str) -> str:
    """Return a Python of this release: on PATH, or among those of pyenv; "" is the one that runs this.

    Raises:
        RuntimeError: there is none.
    """
    if release in ("", "{}.{}".format(*sys.version_info[:2])):
        return sys.executable
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{release}.*/bin/python"))
    for python in filter(None, (which(f"python{release}"), *map(str, installed))):
        if subprocess.run([python, "--version"], capture_output=True).returncode == 0:
            return python
    raise RuntimeError(f"Python {release} is neither on PATH nor in pyenv: install it, or leave --peers out")


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool in one setting, and how much faster ours is to be at least, where that is asked."""

    name: str
    environment: Environment
    script: str
    variant: str = "-"
    least_ratio: float | None = None


RENSA: Final = Environment("rensa", ("rensa==0.5.0", "pyarrow==26.0.1"))
DATASKETCH: Final = Environment("datasketch", ("datasketch==2.0.0", "numpy==2.4.6", "xxhash==3.8.2", "pyarrow==26.0.1"))
TEXT_DEDUP: Final = Environment(
    "text-dedup",
    ("text-dedup==0.4.1", "datasets==5.2.0", "polars==1.44.2", "numpy==2.5.5", "pyarrow==26.0.1"),
    "3.12",
)
DATATROVE: Final = Environment(
    "datatrove",
    (
        "datatrove==0.10.1",
        "spacy==3.8.18",
        "xxhash==3.8.2",
        "numpy==2.4.6",
        "pyarrow==26.0.1",
        "orjson==3.13.0",
        "regex==2026.11.19",
        "tokenizers==0.23.3",
    ),
)
PEERS: Final = (
    Peer("rensa", RENSA, "rensa_dedup", "words", 3),
    Peer("rensa, white space", RENSA, "rensa_dedup", "white space"),
    Peer("datasketch", DATASKETCH, "datasketch_dedup"),
    Peer("text-dedup", TEXT_DEDUP, "text_dedup_dedup", "unverified", 25),
    Peer("text-dedup, verified", TEXT_DEDUP, "text_dedup_dedup", "verified"),
    Peer("datatrove", DATATROVE, "datatrove_dedup", least_ratio=60),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a tool took, in seconds of CPU and of the clock, with which settings; and which documents it keeps."""

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
        [*command, peer.variant],
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
