from __future__ import annotations

import pytest

from tests.benchmarks.chaos_command import chaos


@pytest.mark.slow
def test_run_whose_driver_is_killed_or_whose_disk_is_full_ends_in_the_same_store() -> None:
    assert chaos("--only", "drivers", "--only", "disks")["ours"] >= 1
