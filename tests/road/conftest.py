"""One undisturbed run of the whole road."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from curate.run import Result
from tests.memory import folder_in_memory
from tests.road.corpus import run_road, write_raw


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """The folder of what the tests share."""
    with folder_in_memory() as folder:
        yield folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """As pytest's, in memory."""
    with folder_in_memory() as folder:
        yield folder


@pytest.fixture(scope="session")
def raw(shared: Path) -> Path:
    """The folder of the corpus; nobody writes to it."""
    return write_raw(shared / "raw")


@pytest.fixture(scope="session")
def finished(raw: Path, shared: Path) -> Result:
    """The result of the recipe `road`, made in this process; nobody writes to its store."""
    return run_road(raw, shared / "store")
