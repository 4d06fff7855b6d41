"""What holds for every file of tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("curate", deadline=None, derandomize=True)  # the same cases on any machine, however busy
settings.load_profile("curate")

OF_OTHERS = frozenset({"ray", "browser", "slow"})
"""Marks of tests whose other processes, as Ray's or a browser's, may miss limits of their own on a busy machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try a failed test of such a mark once more; the summary names it."""
    for item in items:
        if OF_OTHERS & {mark.name for mark in item.iter_markers()}:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(autouse=True, scope="module")
def leaves_no_ray() -> Iterator[None]:
    """Fail a file that leaves this process connected to a Ray: the next one would use it, with its old environment."""
    yield
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        ray.shutdown()
        pytest.fail("this process is still connected to a Ray")
