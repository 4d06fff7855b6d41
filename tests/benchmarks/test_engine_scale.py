"""The benchmark of many shards: what it measures of a few, and what its checks refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.engine_scale import Scale, checks_of, measure


def test_few_shards_are_measured_in_this_process(tmp_path: Path) -> None:
    found = measure(3, tmp_path, "local")
    assert found.shards == 3 and min(found.cpu_ms, found.wall_ms, found.reuse_s, found.finish_s) > 0
    assert len(list((tmp_path / "store" / "shards").iterdir())) == 3


@pytest.mark.parametrize(
    ("cpu_ms", "grown_mb", "reuse_s", "wrong"),
    [
        ((20.0, 10.0, 10.5), (1.0, 3.0, 20.0), 2.0, None),  # below a hundred shards time is not compared
        ((9.0, 10.0, 14.0), (1.0, 3.0, 20.0), 2.0, "CPU time per shard, ±"),
        ((9.0, 10.0, 10.5), (1.0, 3.0, 60.0), 2.0, "MB that memory grows from fewest to most"),
        ((9.0, 10.0, 10.5), (1.0, 3.0, 20.0), 20.0, "seconds to reuse the most"),
    ],
)
def test_growth_of_time_or_memory_fails_its_check(
    cpu_ms: tuple[float, ...], grown_mb: tuple[float, ...], reuse_s: float, wrong: str | None
) -> None:
    scales = [
        Scale(shards, cpu, cpu, grown, reuse_s, 1.0)
        for shards, cpu, grown in zip((10, 100, 10_000), cpu_ms, grown_mb, strict=True)
    ]
    assert [name for name, (_, _, right) in checks_of(scales, []).items() if not right] == ([wrong] if wrong else [])
    on_ray = [Scale(200, 1, 1, 5.0, 1, 1), Scale(2000, 1, 1, 80.0, 1, 1)]
    assert not checks_of(scales, on_ray)["MB that a driver on Ray grows"][2]
