"""What holds for every file of tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("curate", deadline=None, derandomize=True)  # the same cases on any machine, however busy
settings.load_profile("curate")


@pytest.fixture(autouse=True, scope="module")
def leaves_no_ray() -> Iterator[None]:
    """Fail a file that leaves this process connected to a Ray: the next one would use it, with its old environment."""
    yield
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        ray.shutdown()
        pytest.fail("this process is still connected to a Ray")
