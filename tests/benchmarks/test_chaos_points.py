from __future__ import annotations

import pytest

from tests.benchmarks.chaos_command import chaos


@pytest.mark.slow
def test_run_killed_at_points_of_every_moment_ends_in_the_same_store() -> None:
    report = chaos("--only", "points", "--every", "16", "--seed", "7")
    assert report["ours"] == report["checks"]["points: killed"][0] >= 9
