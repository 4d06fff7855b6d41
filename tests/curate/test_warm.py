"""What `warm` compiles is all that tasks need, so that workers of a node do not each compile it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path
from curate import deduplicate_parts, deduplicate_spans
from curate.recipes.recipe import Outputs
from curate.recipes.compiling import compile_stages
from curate.running.warm import is_cold, warm
from tests.curate.corpus import read_web, run_on, write_corpus
from transforms.normalise import NormalizeText
from transforms.pii import MaskPII

def compiled():
    return {path for path in Path.home().rglob("*") if path.suffix in (".nbi", ".nbc")}

folder = Path(sys.argv[1])
pages = read_web(write_corpus(folder / "in")).apply(MaskPII(), NormalizeText(), name="web")
outputs = Outputs(web=pages, lines=deduplicate_parts(pages, unit="line"), spans=deduplicate_spans(pages, words=20))
assert is_cold()
warm(compile_stages(outputs.products))
assert not is_cold()
before = compiled()
assert any("_compose_all" in path.name for path in before), "texts that are not composed"
run_on(outputs, folder / "store")
print(len(before), sorted(path.name for path in compiled() - before))
"""


@pytest.mark.slow
def test_kernels_of_a_stage_are_all_compiled_before_its_first_task(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "NUMBA_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={**kept, "HOME": str(tmp_path / "home"), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    count, _, later = done.stdout.strip().partition(" ")
    assert int(count) > 4
    assert later == "[]"
