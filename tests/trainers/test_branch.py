from dataclasses import replace

import numpy as np
import pytest

from curate.configuration import ConfigurationError
from tests.trainers.synthetic import MODEL, MarkovLoader, tiny
from tests.trainers.training import run
from trainers.branch import Later, branch, cooldown
from trainers.checkpoint import CheckpointError, Checkpoints
from trainers.history import segments
from trainers.log import read_log


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    """A run with checkpoints at 0, 4, 8 and 10, and its last state."""
    folder = tmp_path_factory.mktemp("runs") / "parent"
    return folder, run(folder, keep=9).digest


def test_branch_that_changes_nothing_ends_as_its_parent_and_leads_back_to_it(parent, tmp_path):
    folder, digest = parent
    first = branch(folder, 4, tmp_path / "child", tiny(10), MarkovLoader())
    assert first.parent["state"] == first.state
    assert (first.parent["run"], first.parent["changed"], first.parent["fresh"]) == ("parent", [], [])
    assert run(tmp_path / "child").digest == digest
    log = read_log(tmp_path / "child")
    assert [line["step"] for line in log.train] == list(range(4, 10))
    assert log.starts[0]["parent"] == first.parent
    found, problem = segments(tmp_path / "child")
    assert [(part.name, part.first, part.stop) for part in found] == [("parent", 0, 4), ("child", 4, None)]
    assert problem == ""
    steps = [line["step"] for part in found for line in part.lines(part.log.train)]
    assert steps == list(range(10))
    assert Checkpoints(tmp_path / "child").load(10).parent == first.parent


def test_branch_with_another_mixture_and_optimizer_goes_on_at_the_step_of_its_schedule(parent, tmp_path):
    config = cooldown(tiny(10), 4, 4)
    config = replace(config, optimizer=replace(config.optimizer, matrices="muon"))
    loader = Later(MarkovLoader(seed=3), 4)
    first = branch(parent[0], 4, tmp_path / "child", config, loader)
    assert any(name.startswith("optimizer.") for name in first.parent["fresh"])
    assert {line.partition(":")[0] for line in first.parent["changed"]} == {
        "steps", "optimizer.decay", "optimizer.floor", "optimizer.matrices", "plan",
    } - {"optimizer.floor", "optimizer.decay"}  # fmt: skip
    assert np.array_equal(first.read()["model.embedding"], Checkpoints(parent[0]).load(4).read()["model.embedding"])
    assert run(tmp_path / "child", loader=loader, config=config).step == 8
    rates = [line["learning_rate"] for line in read_log(tmp_path / "child").train]
    assert rates == pytest.approx([0.02, 0.015, 0.01, 0.005])
    assert np.array_equal(loader.batch(4).tokens, MarkovLoader(seed=3).batch(0).tokens)
    with pytest.raises(IndexError, match="begins at 4"):
        loader.batch(3)


def test_branch_of_another_model_or_step_or_into_a_run_is_refused(parent, tmp_path):
    folder, loader = parent[0], MarkovLoader()
    with pytest.raises(CheckpointError, match=r"model.hidden: stored 24, given 32"):
        branch(folder, 4, tmp_path / "a", replace(tiny(10), model=replace(MODEL, hidden=32)), loader)
    with pytest.raises(CheckpointError, match="no checkpoint of step 5, only of 0, 4, 8, 10"):
        branch(folder, 5, tmp_path / "a", tiny(10), loader)
    with pytest.raises(CheckpointError, match="has checkpoints already"):
        branch(folder, 4, folder, tiny(10), loader)
    with pytest.raises(ConfigurationError, match="ends after 10"):
        branch(folder, 10, tmp_path / "a", tiny(10), loader)
    with pytest.raises(ConfigurationError, match="step 8 is not"):
        cooldown(tiny(10), 8, 4)


def test_link_to_a_run_that_is_gone_or_another_is_said(parent, tmp_path):
    branch(parent[0], 4, tmp_path / "child", tiny(10), MarkovLoader())
    run(tmp_path / "child", steps=5, validation={})
    content = (tmp_path / "child" / "log.jsonl").read_text("utf-8")
    (tmp_path / "child" / "log.jsonl").write_text(content.replace('"run": "parent"', '"run": "lost"'))
    assert segments(tmp_path / "child")[1] == ""
    moved = tmp_path / "moved" / "deeper" / "child"
    moved.parent.mkdir(parents=True)
    (tmp_path / "child").rename(moved)
    found, problem = segments(moved)
    assert [part.name for part in found] == ["child"]
    assert "lost that it branched from cannot be read" in problem
