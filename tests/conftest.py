"""What holds for every file of tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("curate", deadline=None, derandomize=True)  # the same cases on any machine, however busy
settings.load_profile("curate")


def pytest_collection_finish() -> None:
    """Write no bytecode from here on, in children neither: Python takes that of a file edited within one second."""
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


@pytest.hookimpl(trylast=True)  # after the order was drawn
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with files that take long: one that is begun last keeps one process at work while the others have none."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    ray = {item.path for item in items if item.get_closest_marker("ray")}
    items.sort(key=lambda item: (item.path not in slow, item.path not in ray))


@pytest.fixture(autouse=True, scope="module")
def leaves_no_ray() -> Iterator[None]:
    """Fail a file that leaves this process connected to a Ray: the next one would use it, with its old environment."""
    yield
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        ray.shutdown()
        pytest.fail("this process is still connected to a Ray")
