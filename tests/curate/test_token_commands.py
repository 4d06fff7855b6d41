"""The commands on a plan: exit statuses, what is printed, and that errors say what to do."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from curate import Outputs, hold_out, read_jsonl, tokenize, train_tokenizer
from curate.command_line import main
from curate.commands.results import last_result
from curate.run import open_result
from curate.store import Store, check_self_digest
from curate.upkeep.trace import trace_token
from mixtures import Chunks, FillInTheMiddle, Mixture, Packed, Packing, Phase, Plan, explain, locate
from tests.curate.corpus import run_on, write_lines
from tests.road.corpus import documents, road, run_road, write_raw
from trainers.checkpoint import Checkpoint, Checkpoints
from trainers.config import Config, ModelConfig, OptimizerConfig, flat
from trainers.evidence.judgement import judge
from trainers.state import arrays, init_state

RECIPE = str(Path(__file__).parents[1] / "road" / "corpus.py")


@pytest.fixture(scope="module")
def raw(memory: Path) -> Path:
    return write_raw(memory / "commanded")


@pytest.fixture(scope="module")
def store(raw: Path, memory: Path) -> Path:
    """A finished store; nobody writes to it."""
    return run_road(raw, memory / "commanded store").folder.parent


@pytest.fixture(scope="module")
def other(raw: Path, store: Path, memory: Path) -> Path:
    """A store in which the recipe with other weights ran after the same one; nobody writes to it."""
    shutil.copytree(store, memory / "other")
    return run_road(raw, memory / "other", outputs=road(root=raw, second=9.0)).folder.parent


@pytest.fixture(scope="module")
def plan(store: Path) -> Plan:
    return Plan.load(next(store.glob("road-*/plan.json")))


@pytest.fixture
def moved(raw: Path, tmp_path: Path) -> Path:
    """A copy of the corpus, to change."""
    shutil.copytree(raw, tmp_path / "raw")
    return tmp_path / "raw"


def test_explain_prints_the_components_and_chunks_of_a_step(
    store: Path, plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(store), "--step", "120"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("step 120, phase last, sequences 960 to 967\n")
    assert printed.startswith(f"{explain(plan, 120)}\n") and "notes, pass" in printed
    rows = explain(plan, 120).rows
    lines = [line for line in printed.splitlines() if line.startswith("  row ")]
    assert len(lines) == len(rows)
    caches = open_result(Store(store), last_result(Store(store))).caches["training"]
    for line, row in zip(lines, rows, strict=True):
        for token in (row.start, row.stop - 1):
            assert trace_token(caches, row.component, token).row["id"].hex() in line or " more" in line


def test_batch_prints_rows_with_documents_apart_and_control_characters_escaped(
    store: Path, plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = ""
    for step in range(12):
        assert main(["batch", str(store), "--step", str(step), "--rows", "8"]) == 0
        printed += capsys.readouterr().out
    assert printed.count("── step 3, row ") == 8
    assert re.findall(r"^   \[2\] [0-9]+ tokens: ", printed, re.MULTILINE)
    assert "<|endoftext|>" in printed and "karen" in printed
    assert "\\u001b[1m" in printed and "\\u202e" in printed and "\\u0009" in printed
    assert not {"\x1b", "\u202e", "\t"} & set(printed)
    counts = [int(found) for found in re.findall(r"^   \[[0-9]+\] ([0-9]+) tokens", printed, re.MULTILINE)]
    places = [row for step in range(12) for row in explain(plan, step).rows]
    assert sum(counts) == sum(place.stop - place.start for place in places)
    assert main(["batch", str(store), "--step", "3"]) == 0
    assert capsys.readouterr().out.count("── step") == 4


def test_trace_prints_document_record_and_characters_and_replays(
    store: Path, raw: Path, plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["trace", str(store), "--step", "5", "--row", "2", "--token", "7"]
    place = locate(plan, 5, 2, 7)
    assert main(command) == 0
    plain = capsys.readouterr().out
    assert plain.startswith("step 5, row 2, token 7: id ") and "⟦" in plain
    assert f"component {place.component}, pass {place.epoch}, chunk {place.chunk}, token {place.token} of" in plain
    assert re.search(r"record: [a-z0-9./]+, \w+ [0-9]+, length [0-9]+", plain)
    assert main([*command, "--replay", RECIPE, "--set", f"root={raw}"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(plain) and "replayed: the same text, the token stands for '" in printed


def test_commands_on_packed_and_rearranged_sequences_agree_and_their_packings_are_stored(
    store: Path, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(shutil.copytree(store, tmp_path / "other"))
    made = road(root=raw)
    assert isinstance(made.mixture, Mixture)
    phase, views = Phase("main", tokens=9_000, weights={}, others=1), {"notes": FillInTheMiddle(1, 2, 3, rate=1)}
    mixture = Mixture(made.mixture.cells, phase, sequences=Packed(48), repeats=None, batch=8, views=views)
    result = run_road(raw, other, outputs=Outputs(mixture, train=made.products["train"], batches=[(0, 4)]))
    place = str(other)
    plan = Plan.load(result.folder / "plan.json")
    stored = {path.name: Packing.from_bytes(path.read_bytes()) for path in (result.folder / "packings").iterdir()}
    assert {part.packing for part in plan.components} == set(stored) == {item.digest for item in stored.values()}
    packings = {part.name: stored[part.packing] for part in plan.components}
    capsys.readouterr()
    assert main(["verify", place]) == 0
    assert main(["explain", place, "--step", "3"]) == 0
    assert f"{explain(plan, 3, packings)}\n" in capsys.readouterr().out
    assert main(["batch", place, "--step", "3", "--rows", "8"]) == 0
    counts = re.findall(r"^   \[[0-9]+\] ([0-9]+) tokens", capsys.readouterr().out, re.MULTILINE)
    assert len(counts) >= sum(len(row.spans) for row in explain(plan, 3, packings).rows if row.component != "notes")
    assert main(["trace", place, "--step", "3", "--row", "2", "--token", "7"]) in {0, 2}  # 2: a sentinel
    identity = next(iter(result.outputs["train"].batches(["id"])))["id"][0].as_py().hex()
    assert main(["where", place, "--id", identity]) == 0
    assert "drawn in step" in capsys.readouterr().out
    next((result.folder / "packings").iterdir()).write_bytes(b"{}")
    assert main(["explain", place, "--step", "3"]) == 3
    assert "packing" in capsys.readouterr().err


def test_trace_escapes_what_a_document_holds(store: Path, plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    seen = ""
    for step in range(0, plan.steps, 8):
        for row in ("0", "5"):
            assert main(["trace", str(store), "--step", str(step), "--row", row, "--token", "9"]) == 0
            seen += capsys.readouterr().out
    assert "\\u001b[1m" in seen and "\\u202e" in seen and not {"\x1b", "\u202e", "\t"} & set(seen)


def component_step(plan: Plan, cell: str) -> tuple[str, str]:
    """Return the first step and row of a component."""
    return next(
        (str(step), str(row))
        for step in range(plan.steps)
        for row, place in enumerate(explain(plan, step).rows)
        if place.component == cell
    )


def replay_of(store: Path, plan: Plan, cell: str, *more: str) -> int:
    step, row = component_step(plan, cell)
    return main(["trace", str(store), "--step", step, "--row", row, "--token", "3", "--replay", RECIPE, *more])


def test_replay_after_the_raw_file_was_changed_exits_1_and_says_so(
    store: Path, plan: Plan, moved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (moved / "notes").iterdir():
        path.write_text(path.read_text("utf-8").replace("ren ", "REN "), "utf-8")
    assert replay_of(store, plan, "notes", "--set", f"root={moved}") == 1
    assert "replayed: ANOTHER TEXT, digest " in capsys.readouterr().err


def test_replay_after_the_raw_file_is_gone_exits_3_and_says_so(
    store: Path, plan: Plan, moved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(moved / "pages")
    assert replay_of(store, plan, "pages", "--set", f"root={moved}") == 3
    assert "is no longer there: give the root that it was read from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ((), "missing a required argument: 'root'"),
        (("--set", "root"), "give NAME=VALUE"),
        (("--set", "rot=x"), "has no setting rot"),
    ],
)
def test_replay_with_wrong_settings_exits_2_and_says_what_to_do(
    store: Path, plan: Plan, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], says: str
) -> None:
    assert replay_of(store, plan, "notes", *more) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explain", "--step", "9999"], "step 9999: the plan has steps 0 to "),
        (["batch", "--step", "-1"], "step -1: the plan has steps 0 to "),
        (["trace", "--step", "0", "--row", "8", "--token", "0"], "row 8: the batch has rows 0 to 7"),
        (["trace", "--step", "0", "--row", "0", "--token", "32"], "token 32: a row has tokens 0 to 31"),
        (["trace", "--step", "0", "--row", "0", "--token", "0", "--replay", "none.py"], "none.py is not a file"),
        (["train", "--run", "unused", "--width", "7"], "width is a positive multiple of 64, or of 8 below 64"),
    ],
)
def test_wrong_use_exits_2_and_says_what_to_do(
    store: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main([arguments[0], str(store), *arguments[1:]]) == 2
    assert says in capsys.readouterr().err


def test_store_whose_recipe_has_no_mixture_exits_2_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", [{"text": "a text"}])
    made = run_on(Outputs(texts=read_jsonl(tmp_path / "in", source="texts")), tmp_path / "store")
    capsys.readouterr()
    for command in ("explain", "batch"):
        assert main([command, str(made.folder.parent), "--step", "0"]) == 2
        assert "has no plan: its recipe gives no mixture to Outputs(…)" in capsys.readouterr().err


def test_folder_without_a_result_exits_2_and_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(tmp_path), "--step", "0"]) == 2
    assert "holds no result of a recipe: run one with curate run" in capsys.readouterr().err


def test_damaged_plan_or_cache_exits_3_and_names_the_file(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(store, tmp_path / "store")
    plan = next((tmp_path / "store").glob("road-*/plan.json"))
    content = plan.read_bytes()
    plan.write_bytes(content.replace(b'"seed":11', b'"seed":12'))
    assert main(["explain", str(tmp_path / "store"), "--step", "0"]) == 3
    assert "plan.json" in capsys.readouterr().err
    plan.write_bytes(content)
    assert main(["explain", str(tmp_path / "store"), "--step", "0"]) == 0
    cache = next((tmp_path / "store" / "caches").glob("notes-*/cache.json"))
    cache.write_bytes(cache.read_bytes()[:-9])
    assert main(["batch", str(tmp_path / "store"), "--step", "0"]) == 3
    assert "cache.json" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--steps", "-3"], ["--steps", "0"], ["--keep-every", "-1"], ["--peak", "nan"]])
def test_number_of_training_below_its_bound_is_a_wrong_command(
    given: list[str], store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["train", str(store), "--run", str(tmp_path / "run"), *given])
    assert stopped.value.code == 2 and f"argument {given[0]}: a " in capsys.readouterr().err


def test_training_is_not_begun_in_a_folder_of_something_else(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in store.iterdir())
    assert main(["train", str(store), "--run", str(store), "--steps", "1"]) == 2
    assert "holds other files and no run" in capsys.readouterr().err
    assert sorted(path.name for path in store.iterdir()) == before
    (tmp_path / "file").write_text("x")
    assert main(["train", str(store), "--run", str(tmp_path / "file"), "--steps", "1"]) == 2
    assert "is a file" in capsys.readouterr().err


def test_comparison_and_proposal_that_could_not_be_shown_or_fitted_are_refused_before_any_training(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = str(tmp_path / "absent" / "file")
    for command in (["compare", "a", "b", "--page", nowhere], ["propose", "a", "--save", nowhere]):
        with pytest.raises(SystemExit):
            main(command)
        assert "a file in a folder that is there" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["compare", "a", "b", "--level", "2"])
    assert "between 0 and 1" in capsys.readouterr().err
    assert main(["propose", str(store), "--trials", "2"]) == 2
    assert "--trials 2: " in capsys.readouterr().err


@pytest.mark.slow
def test_train_writes_a_log_goes_on_where_it_was_stopped_and_ends_the_same(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", str(store), "--run", str(tmp_path / "run"), "--steps", "4", "--width", "64", "--held-out", "2"]
    assert main(command) == 0
    first = capsys.readouterr().out
    assert "\nstep 4, state " in first and first.endswith("log.jsonl\n")
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text("utf-8").splitlines()]
    text = json.dumps(log)
    assert all(name in text for name in ("letters", "notes", "pages", "loss"))
    assert main(command) == 0
    assert capsys.readouterr().out == first
    assert main([*command, "--steps", "5"]) == 3
    assert "steps" in capsys.readouterr().err  # another budget is another schedule: the field is named
    run, branch = tmp_path / "run", tmp_path / "branch"
    assert main(["watch", str(run), "--every", "0"]) == 0
    page = (run / "run.html").read_text("utf-8")
    assert all(shown in page for shown in ("Bits per byte", "letters", "finished", "of what products of matrices"))
    assert main(["log", str(run), "--to", "tensorboard"]) == 0
    assert f"10 lines of {run / 'log.jsonl'} to tensorboard" in capsys.readouterr().out
    cooled = ["train", str(store), "--run", str(branch), "--from", str(run), "--cooldown", "2", "--held-out", "2"]
    assert main([*cooled, "--at", "3"]) == 2
    assert "no checkpoint of step 3, only of 0, 4" in capsys.readouterr().err
    declared = ["declare", *cooled[1:-2], "--at", "0", "--hypothesis", "It cools.", "--fails-if", "loss > 99"]
    assert main(declared) == 0
    assert main([*cooled, "--at", "0"]) == main([*cooled, "--at", "0"]) == 0
    assert "step 2, state " in capsys.readouterr().out
    judged = judge(branch)
    assert (judged.verdict, judged.changes) == ("passed", ())
    path = branch / "declaration.json"
    path.write_text(path.read_text().replace("It cools.", "It cooled."))
    assert main(["watch", str(branch), "--every", "0"]) == 1
    assert "records-whole" in capsys.readouterr().out


@pytest.mark.slow
def test_compare_of_two_stores_prints_a_table_and_a_verdict(
    store: Path, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(list(other.glob("road-*/plan.json"))) == 2  # the one that ran last is taken
    capsys.readouterr()
    command = ["compare", str(store), str(other), "--seeds", "3", "--steps", "3", "--held-out", "2"]
    page = tmp_path / "compare.html"
    assert main([*command, "--width", "64", "--page", str(page)]) == 0
    printed, said = capsys.readouterr()
    assert said.index("measuring time and noise: run 1, on ") < said.index(
        f"comparing, 6 training runs: run 6, on {other}"
    )
    assert printed.startswith("before the comparison: width 64 × 3 steps; seeds 1 to 3; 4 comparisons share the level")
    assert "3 paired seeds" in printed and "\nverdict: " in printed and "It was measured at one size" in printed
    for domain in ("letters", "notes", "pages", "mean of domains"):
        assert re.search(rf"^ +{domain} +[+-]0\.[0-9]+ ", printed, re.MULTILINE)
    assert "Stated before the first run" in page.read_text("utf-8")
    stored = check_self_digest(json.loads(page.with_suffix(".json").read_bytes()), "compare.json")
    assert stored["sizes"][0]["ranking"] and set(stored["stated"]["noise"]) == set(stored["stated"]["detectable"])


def test_diff_of_two_stores_prints_fields_and_the_steps_in_common(
    store: Path, other: Path, plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", str(store), str(store)]) == 0
    assert capsys.readouterr().out == f"the same plan, {plan.digest}\n"
    assert main(["diff", str(store), str(other)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("segments[1].weights.letters: ") and " ≠ " in line for line in lines)
    assert re.fullmatch(r"the first [0-9,]+ of [0-9,]+ steps read the same|their first steps already .*", lines[-1])


def test_compare_of_what_cannot_be_compared_exits_2_and_says_why(
    store: Path, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(store), str(store)]) == 2
    assert "takes two stores" in capsys.readouterr().err
    assert main(["compare", str(store), str(tmp_path / "none")]) == 2
    assert "holds no result of a recipe" in capsys.readouterr().err
    assert main(["compare", str(store), str(other), "--seeds", "2", "--steps", "2"]) == 2
    assert "--seeds 2: at least 3" in capsys.readouterr().err
    assert main(["compare", str(store), str(other), "--steps", "9999"]) == 2
    assert re.search(r"--steps 9999: the shortest of the plans has [0-9]+", capsys.readouterr().err)


def test_compare_with_a_mixture_that_trains_on_the_held_out_text_is_refused(
    store: Path, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(store, tmp_path / "other")
    clean = documents(raw)
    train, _ = hold_out(clean, documents=9, per="source")
    cells = tokenize(clean, train_tokenizer(train, 512), by="source", name="tokenize all")
    phase = Phase("main", tokens=5_000, weights={}, others=1)
    run_road(raw, tmp_path / "other", outputs=Outputs(Mixture(cells, phase, sequences=Chunks(32), batch=8)))
    assert main(["compare", str(store), str(tmp_path / "other"), "--steps", "2"]) == 2
    assert "no held-out text is neutral: mixtures train on all of it" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "other"), str(store), "--steps", "2"]) == 2
    assert "has no held-out text: give its recipe Outputs(…, validation=…)" in capsys.readouterr().err


def _save(run: Path, vocabulary: int) -> Path:
    model = ModelConfig(vocabulary=vocabulary, width=16, layers=1, heads=2, kv_heads=1, hidden=16)
    config = Config(model, OptimizerConfig(learning_rate=0.01, warmup=0), steps=3, batch=2, length=16)
    checkpoints = Checkpoints(run)
    with checkpoints.locked():
        checkpoints.save(Checkpoint(0, "plan", flat(config), {}, arrays(init_state(config))))
    return run


@pytest.fixture
def saved(tmp_path: Path, plan: Plan) -> Path:
    """A run with the vocabulary of the store."""
    return _save(tmp_path / "run", plan.vocabulary)


def test_sample_writes_the_same_text_for_a_seed(saved: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sample", str(saved), "--store", str(store), "--prompt", "The", "--count", "6", "--top-k", "50"]
    texts = []
    for seed in ("1", "1", "2"):
        assert main([*command, "--seed", seed]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]
    assert all(text.startswith("The") for text in texts)


def test_export_model_writes_model_and_tokenizer(
    saved: Path, store: Path, plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["export-model", str(saved), str(out), "--store", str(store), "--step", "0"]) == 0
    assert "LlamaForCausalLM, step 0, state" in capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert json.loads((out / "config.json").read_text("utf-8"))["vocab_size"] == plan.vocabulary


def test_sample_and_export_of_what_is_not_there_exit_2_and_say_what_to_do(
    saved: Path, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = _save(tmp_path / "other", 77)
    for arguments, said in (
        (["sample", str(saved)], "--store"),
        (["sample", str(other), "--store", str(store), "--prompt", "The"], "tokens, the model 77"),
        (["train", str(store), "--run", str(tmp_path / "new"), "--experts", "8"], "as 8,2"),
        (["train", str(store), "--run", str(tmp_path / "new"), "--experts", "8,1"], "1 of 8 experts chosen"),
        (["export-model", str(saved), str(tmp_path / "out"), "--step", "9"], "there are 0"),
        (["export-model", str(saved), str(tmp_path / "out"), "--weights", "average"], "keeps no average"),
    ):
        assert main(arguments) == 2, arguments
        assert said in capsys.readouterr().err
