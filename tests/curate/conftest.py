"""What the tests of the engine share: one small corpus, one undisturbed run of it, one local Ray."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from curate.cluster.runner import RayRunner, ray_runner
from curate.run import Result
from tests.curate import corpus
from tests.curate.corpus import run_on, small, write_corpus


@pytest.fixture(scope="session")
def memory() -> Iterator[Path]:
    """A folder in memory where there is one: every published file is synced twice, which a busy disk makes slow."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="curate-tests-", dir=shared if shared.is_dir() else None))
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
    """The folder of the small corpus; nobody writes to it."""
    return write_corpus(memory / "raw")


@pytest.fixture(scope="session")
def undisturbed(raw: Path, memory: Path) -> Result:
    """The result of the recipe `small` over `raw`, made in this process; nobody writes to its store."""
    return run_on(small(raw), memory / "undisturbed")


@pytest.fixture(scope="module")
def ray_of_two() -> Iterator[RayRunner]:
    """A local Ray with two workers."""
    with ray_runner(2, [corpus]) as runner:
        yield runner
