"""Checkpoints of the tests go to memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory import folder_in_memory


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """As pytest's, in memory."""
    with folder_in_memory() as folder:
        yield folder
