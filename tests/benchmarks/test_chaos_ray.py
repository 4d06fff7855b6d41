from __future__ import annotations

import pytest

from tests.benchmarks.chaos_command import chaos


@pytest.mark.slow
@pytest.mark.ray
def test_run_on_ray_whose_driver_and_workers_are_killed_ends_in_the_same_store() -> None:
    assert chaos("--only", "ray", "--seed", "3")["ours"] >= 1
