"""A folder in memory where there is one: checkpoints are synced, which a busy disk makes slow."""

import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path():
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="curate-train-", dir=shared if shared.is_dir() else None))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
