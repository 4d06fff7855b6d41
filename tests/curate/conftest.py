"""What the tests of the engine share: one small corpus, one undisturbed run of it, one local Ray."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from curate.cluster.runner import RayRunner, ray_runner
from curate.run import Result
from tests.curate import corpus
from tests.curate.corpus import run_on, small, write_corpus
from tests.memory import folder_in_memory


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """The folder of what all files of tests share."""
    with folder_in_memory() as folder:
        yield folder


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    """A folder of the file of tests."""
    with folder_in_memory() as folder:
        yield folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """As pytest's, in memory."""
    with folder_in_memory() as folder:
        yield folder


@pytest.fixture(scope="session")
def raw(shared: Path) -> Path:
    """The folder of the small corpus; nobody writes to it."""
    return write_corpus(shared / "raw")


@pytest.fixture(scope="session")
def undisturbed(raw: Path, shared: Path) -> Result:
    """The result of the recipe `small` over `raw`, made in this process; nobody writes to its store."""
    return run_on(small(raw), shared / "undisturbed")


@pytest.fixture
def finished(undisturbed: Result, tmp_path: Path) -> Path:
    """A copy of the store of `undisturbed`, to change."""
    return Path(shutil.copytree(undisturbed.folder.parent, tmp_path / "finished"))


@pytest.fixture(scope="module")
def ray_of_two() -> Iterator[RayRunner]:
    """A local Ray with two workers."""
    with ray_runner(2, [corpus]) as runner:
        yield runner
