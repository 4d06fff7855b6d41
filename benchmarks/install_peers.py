"""Environments for other tools: each in a folder of its own beside the repository's, with every package pinned.

    python -m benchmarks.install_peers NAME …      make these, unless they are there as pinned
    python -m benchmarks.install_peers --all       all of them: some 10 GB, most of it torch
    python -m benchmarks.install_peers --freeze NAME    pin what the environment holds now, after packages were changed

`benchmarks/peers/NAME.txt` holds the pins of `.venv-peer-NAME` (git ignores the folder): a first line "# python 3.11"
says which release, one line "# why …" what it is for, and every package that is there follows, so pip resolves nothing.
Benchmarks make an environment themselves where they need it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Final

SCRIPTS: Final = Path(__file__).parent / "peers"
ROOT: Final = Path(__file__).parents[1]
MARKER: Final = "packages.txt"
"""Holds the pins that an environment was made from."""

_TOOLS: Final = re.compile(r"(?:pip|setuptools|wheel)==")


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment for other tools: its name is that of its folder and of the file with its pins."""

    name: str

    @property
    def pins(self) -> Path:
        """The file that says what is installed."""
        return SCRIPTS / f"{self.name}.txt"

    @property
    def interpreter(self) -> Path:
        """Its Python."""
        return ROOT / f".venv-peer-{self.name}" / "bin" / "python"

    @property
    def is_made(self) -> bool:
        """Whether it is there, as pinned."""
        marker = self.interpreter.parents[1] / MARKER
        return marker.exists() and marker.read_text() == self.pins.read_text()

    def said(self, word: str) -> str:
        """Return what the file's comment "# word …" says, "" where there is none."""
        found = re.search(rf"^# {word} (.*)$", self.pins.read_text(), re.MULTILINE)
        return found[1] if found else ""

    def versions(self) -> dict[str, str]:
        """Return what is pinned: name → version."""
        lines = [line.split("==") for line in self.pins.read_text().splitlines() if "==" in line]
        return {name: version.partition(" ")[0] for name, version in lines}

    def make(self) -> None:
        """Make it, unless it is there.

        Raises:
            RuntimeError: no such Python is found.
            subprocess.CalledProcessError: it cannot be made; no network, most likely.
        """
        if self.is_made:
            return
        folder = self.interpreter.parents[1]
        print(f"making {folder.name}", file=sys.stderr)
        subprocess.run([find_python(self.said("python")), "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(self.interpreter), "-m", "pip", "install", "-qq", "--no-deps", "-r", str(self.pins)]
        subprocess.run(install, check=True)
        (folder / MARKER).write_text(self.pins.read_text())

    def freeze(self) -> None:
        """Write down what is installed now, below the comments that the file has."""
        command = [str(self.interpreter), "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        comments = [line for line in self.pins.read_text().splitlines() if line.startswith("#")]
        packages = [line for line in listed if "==" in line and not _TOOLS.match(line)]
        self.pins.write_text("\n".join([*comments, *sorted(packages, key=str.lower), ""]))
        (self.interpreter.parents[1] / MARKER).write_text(self.pins.read_text())


def environments() -> tuple[Environment, ...]:
    """Return all environments, by name."""
    return tuple(Environment(path.stem) for path in sorted(SCRIPTS.glob("*.txt")))


def find_python(release: str) -> str:
    """Return a Python of this release: on PATH, or among those of pyenv.

    Raises:
        RuntimeError: there is none.
    """
    if release == "{}.{}".format(*sys.version_info[:2]):
        return sys.executable
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{release}.*/bin/python"))
    for python in filter(None, (which(f"python{release}"), *map(str, installed))):
        if subprocess.run([python, "--version"], capture_output=True).returncode == 0:
            return python
    raise RuntimeError(f"Python {release} is neither on PATH nor in pyenv: install it, or leave --peers out")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make or pin environments; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    known = {environment.name: environment for environment in environments()}
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--freeze", action="store_true", help="pin what is installed now")
    options = parser.parse_args(arguments)
    names = list(known) if options.all else options.names
    if not names or set(names) - set(known):
        parser.error(f"name environments, of {', '.join(known)}")
    for name in names:
        (known[name].freeze if options.freeze else known[name].make)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
