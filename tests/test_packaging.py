"""A wheel holds what an editable installation finds in the working tree."""

from __future__ import annotations

import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_every_file_of_a_package_is_part_of_its_wheel():
    packages = ("transforms", "curate", "mixtures", "trainers", "viewers")
    listed = subprocess.run(["git", "ls-files", *packages], cwd=ROOT, capture_output=True, text=True, check=True)
    patterns = ["*.py", *SETTINGS["tool"]["setuptools"]["package-data"]["*"]]
    files = listed.stdout.split()
    assert len(files) > 300
    left = [file for file in files if not any(fnmatch(Path(file).name, pattern) for pattern in patterns)]
    assert not left, f"package-data in pyproject.toml leaves out {left}"


def test_every_folder_of_modules_is_a_package():
    folders = {
        path.parent
        for name in ("transforms", "curate", "mixtures", "trainers", "viewers")
        for path in (ROOT / name).rglob("*.py")
    }
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").exists()]
