"""From published files alone: the plan is compiled again, each failed run is found, and each changed file is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from curate.command_line import main
from tests.trainers.ladders import a_log, made, write_log
from tests.viewers.parsed import parse
from tests.viewers.stores import Made
from trainers.evidence.declaration import load_declaration
from trainers.evidence.diary import write_note
from trainers.evidence.listing import list_runs

RECIPE = """
from pathlib import Path
from curate import recipe
from tests.viewers import token_stores

@recipe
def all_the_way(folder: Path, seed: int = 3):
    made = token_stores.recipe(folder)
    object.__setattr__(made.mixture, "seed", seed)
    return made
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that finished, failed by an error, were stopped, branched, and one whose log is no log."""
    place = tmp_path_factory.mktemp("runs") / "runs"
    size = made()[0].rungs[0]
    write_log(place / "ladder" / "good", a_log(size))
    write_log(place / "ladder" / "bad <b>", a_log(size, stop=7, reason="TrainingError: step 7: the loss is nan"))
    write_log(place / "stopped", a_log(size, stop=9, reason="SIGTERM"))
    write_log(place / "killed", a_log(size, stop=9, reason=None))
    branched = a_log(size, stop=12)
    start = {**branched.starts[0], "step": 5, "parent": {"run": "stopped", "folder": "../stopped", "step": 5}}
    write_log(place / "branch", type(branched)((start,), *(getattr(branched, f) for f in list(branched.__slots__)[1:])))
    (place / "none").mkdir()
    (place / "none" / "log.jsonl").write_text("no json\n")
    write_note(place / "stopped", 8, "stopped to look at the data", "ada", now=60)
    return place


@pytest.fixture(scope="module")
def published(trained: Made, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `curate publish` writes of the store and the runs."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "recipe.py").write_text(RECIPE)
    out = folder / "out"
    command = ["publish", str(trained.root), str(out), "--recipe", str(folder / "recipe.py"), "--run", str(runs)]
    assert main([*command, "--set", f"folder={trained.root.parent}"]) == 0
    return out


def test_published_files_rebuild_the_plan_and_name_each_failed_run(
    published: Path, trained: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = Path(shutil.copytree(published, tmp_path / "downloaded"))
    assert main(["rebuild", str(alone)]) == 1  # the log that is no log
    told = capsys.readouterr()
    assert f"plan {trained.result.plan}, compiled again from" in told.out
    assert "run runs-bad <b>: FAILED, failed: TrainingError: step 7: the loss is nan" in told.out
    assert "run runs-none: FAILED, unreadable" in told.out and "2 of 6 runs failed" in told.out
    assert told.err.count("\n") == 1 and "runs-none" in told.err
    shown = parse((alone / "index.html").read_text("utf-8")).text
    assert "2 of 6 runs" in shown and "the loss is nan" in shown and "stopped at step 5" in shown


def test_published_files_that_were_changed_are_named(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = Path(shutil.copytree(published, tmp_path / "downloaded"))
    notes = alone / "runs" / "runs-stopped" / "notes.jsonl"
    notes.write_text(notes.read_text().replace("ada", "eve"))
    (alone / "runs" / "runs-bad <b>" / "log.jsonl").unlink()
    (alone / "more.txt").write_text("")
    value = json.loads((alone / "mixture" / "mixture.json").read_text())
    (alone / "mixture" / "mixture.json").write_text(json.dumps({**value, "seed": 4}))
    assert main(["rebuild", str(alone)]) == 1
    said = capsys.readouterr().err
    for part in (
        "notes.jsonl is not the file",
        "log.jsonl is missing",
        "more.txt was not published",
        "file is damaged",
    ):
        assert part in said
    assert main(["rebuild", str(tmp_path)]) == 2


def test_recipe_with_another_mixture_is_not_published(
    trained: Made, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = str(published.parent / "recipe.py")
    command = ["publish", str(trained.root), str(tmp_path / "out"), "--recipe", recipe]
    assert main([*command, "--set", f"folder={trained.root.parent}", "--set", "seed=4"]) == 2
    assert "compiles to another plan" in capsys.readouterr().err
    assert main([*command[:2], str(published), *command[3:], "--set", f"folder={trained.root.parent}"]) == 2
    assert "already" in capsys.readouterr().err


def test_index_lists_training_runs_failures_first_and_draws_branches(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", str(runs), "--out", str(tmp_path / "index.html")]) == 0
    html = (tmp_path / "index.html").read_text("utf-8")
    shown = parse(html).text
    assert "2 of 6 runs" in shown and "its log cannot be read" in shown and "bad <b>" not in html
    assert shown.index("the loss is nan") < shown.index("as asked" if "as asked" in shown else "SIGTERM")
    assert 'class="bars branches"' in html
    found = {run.name: run for run in list_runs(runs)}
    assert [found[name].outcome for name in ("ladder/good", "killed", "stopped")] == ["finished", "running", "stopped"]
    assert (found["branch"].parent, found["branch"].first, found["stopped"].notes) == ("stopped", 5, 1)


def test_commands_declare_a_run_on_the_plan_and_note_on_it(
    trained: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    command = ["declare", str(trained.root), "--run", str(run), "--hypothesis", "It learns.", "--steps", "20"]
    assert main(command) == 2
    assert "what would count as failure" in capsys.readouterr().err
    assert main([*command, "--fails-if", "loss > 4.5", "--fails-if", "spikes > 9"]) == 0
    found = load_declaration(run)
    assert found is not None and found.digest in capsys.readouterr().out
    assert (found.plan, found.config["steps"], len(found.failure)) == (trained.result.plan, 20, 2)
    assert main([*command, "--fails-if", "loss > 5"]) == 2
    assert main(["note", str(run), "begins tomorrow", "--step", "0", "--author", "ada"]) == 0
    (listed,) = list_runs(run)
    assert (listed.outcome, listed.notes, listed.verdict) == ("declared", 1, "running")


def test_command_ladder_prints_sizes_and_refuses_too_few(
    trained: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["ladder", str(trained.root), "--target", "256", "--out", str(tmp_path), "--dry-run", "--widths"]
    assert main([*command, "64,128"]) == 2
    assert "at least 3 different widths" in capsys.readouterr().err
    assert main([*command, "64,x"]) == 2
    assert "numbers with commas" in capsys.readouterr().err
