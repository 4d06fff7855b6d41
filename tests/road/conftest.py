"""One undisturbed run of the whole road."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from curate.run import Result
from tests.road.corpus import run_road, write_raw


@pytest.fixture(scope="session")
def memory() -> Iterator[Path]:
    """A folder in memory where there is one: every published file is synced twice, which a busy disk makes slow."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="curate-road-", dir=shared if shared.is_dir() else None))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tmp_path(memory: Path) -> Iterator[Path]:
    """As pytest's, in memory."""
    folder = Path(tempfile.mkdtemp(dir=memory))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def raw(memory: Path) -> Path:
    """The folder of the corpus; nobody writes to it."""
    return write_raw(memory / "raw")


@pytest.fixture(scope="session")
def finished(raw: Path, memory: Path) -> Result:
    """The result of the recipe `road`, made in this process; nobody writes to its store."""
    return run_road(raw, memory / "store")
