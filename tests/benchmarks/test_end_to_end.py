"""The end-to-end benchmark: its checks can fail, and all hold on a few real pages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.end_to_end import similar_pairs
from benchmarks.end_to_end_recipe import ARCHIVE, size_of, write_inputs

ROOT = Path(__file__).parents[2]


def test_similar_pairs_counts_equal_and_near_texts_only() -> None:
    text = " ".join(f"word{number}" for number in range(60))
    near, far = text.replace("word30", "other"), " ".join(f"term{number}" for number in range(60))
    assert similar_pairs([text, far, far + " more"]) == 1
    assert similar_pairs([text, near, far]) == 1 and similar_pairs([text, far]) == 0


def test_inputs_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    if not ARCHIVE.exists():
        pytest.skip(f"{ARCHIVE} is not there")
    roots = [write_inputs(tmp_path / name, 11) for name in ("one", "two")]
    contents = [{path.name: path.read_bytes() for path in root.iterdir()} for root in roots]
    assert contents[0] == contents[1]
    assert size_of(roots[0])[0] == 145 + 3 * (11 + 2)  # the sample, and pages of which two are there twice


@pytest.mark.slow
def test_end_to_end_on_a_few_pages_passes_its_checks() -> None:
    if not ARCHIVE.exists():
        pytest.skip(f"{ARCHIVE} is not there")
    command = [sys.executable, "-m", "benchmarks.end_to_end", "--size", "tiny"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert all(holds for _, _, holds in report["checks"].values()) and len(report["checks"]) == 6
    assert report["ours"] > 0 and report["stages"]["ours"]["tokenize"][1] == report["checks"]["texts kept"][0] > 20
