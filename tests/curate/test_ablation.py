"""Parts of a recipe that can be left out, what is built without them, and the command that tries it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curate import Outputs, deduplicate_urls, read_jsonl, read_warc, tokenize, train_tokenizer
from curate.ablations import AblatedPart, Ablation, Effect, read_ablation, write_ablation
from curate.command_line import main
from curate.commands.ablate import variants_of
from curate.configuration import ConfigurationError
from curate.recipes.ablation import cells_without, parts_of, training_cells
from curate.recipes.compiling import compile_stages
from curate.recipes.graph import Dataset, Deduplicate
from curate.recipes.recipe import Recipe
from curate.store import Store, StoreError
from mixtures import Mixture, Phase
from tests.road.corpus import documents, road, write_raw
from transforms import NormalizeText

RECIPE = str(Path(__file__).parents[1] / "road" / "corpus.py")


@pytest.fixture(scope="module")
def raw(memory: Path) -> Path:
    return write_raw(memory / "ablated")


@pytest.fixture(scope="module")
def outputs(raw: Path) -> Outputs:
    assert isinstance(road, Recipe)
    return road(root=raw)


def operations(dataset: Dataset) -> list[str]:
    own = [type(dataset.operation).__name__]
    return [name for parent in dataset.inputs for name in operations(parent)] + own


def test_parts_are_the_steps_on_the_way_to_the_cells_with_what_protects_marked(outputs: Outputs) -> None:
    parts = {part.name: part.protects for part in parts_of(outputs)}
    assert parts == {
        "EditText of letters": None,
        "MaskPII of letters": "personal data",
        "MaskPII of pages": "personal data",
        "MaskPII of notes": "personal data",
        "deduplicate of letters, pages, notes": None,
        "Decontaminate of letters, pages, notes": "benchmarks",
    }


def test_cells_without_a_part_lack_it_alone_and_keep_the_tokenizer(outputs: Outputs) -> None:
    cells = training_cells(outputs)
    parts = {part.name: part for part in parts_of(outputs)}
    tidy = cells_without(outputs, parts["EditText of letters"])
    assert isinstance(cells.inputs[0], Dataset) and isinstance(tidy.inputs[0], Dataset)
    before, after = operations(cells.inputs[0]), operations(tidy.inputs[0])
    assert len(before) - len(after) == 1 and before.count("Apply") - after.count("Apply") == 1
    assert tidy.inputs[1] is cells.inputs[1]
    near = cells_without(outputs, parts["deduplicate of letters, pages, notes"]).inputs[0]
    dataset = near
    while isinstance(dataset, Dataset) and not isinstance(dataset.operation, Deduplicate):
        dataset = dataset.inputs[0]
    assert isinstance(dataset, Dataset) and isinstance(dataset.operation, Deduplicate)
    assert dataset.operation.method is None  # equal texts still go: several sources become one dataset there


def test_variants_are_made_of_what_can_be_left_out_and_the_rest_says_why(outputs: Outputs, raw: Path) -> None:
    variants, untried = variants_of(outputs, [])
    assert [*variants] == ["EditText of letters", "deduplicate of letters, pages, notes"]
    assert {part.why for part in untried} == {
        "it protects personal data, which loss does not measure",
        "it protects benchmarks, which loss does not measure",
    }
    with pytest.raises(ConfigurationError, match="there is no part 'tidy'"):
        variants_of(outputs, ["tidy"])
    with pytest.raises(ConfigurationError, match="no mixture"):
        parts_of(Outputs(documents(raw)))


def test_ablation_that_was_written_is_read_for_its_result_only_and_damage_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path)
    effect = Effect("web", 0.125, -0.25, 0.5, "not told apart")
    made = Ablation("k1", 0.01, "width 64", (AblatedPart("tidy", "not told apart", "", (effect,)),))
    assert read_ablation(store, "k1") is None
    write_ablation(store, made)
    assert read_ablation(store, "k1") == made and read_ablation(store, "k2") is None
    path = tmp_path / "ablation.json"
    path.write_text(path.read_text("utf-8").replace("0.125", "0.126"), "utf-8")
    with pytest.raises(StoreError):
        read_ablation(store, "k1")


@pytest.mark.slow
def test_ablate_compares_writes_the_file_and_the_report_shows_it(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store")
    command = ["ablate", RECIPE, "--store", store, "--set", f"root={raw}", "--runner", "local"]
    assert main([*command, "--seeds", "2"]) == 2 and not Path(store).exists()
    assert "--seeds 2: at least 3" in capsys.readouterr().err
    assert main([*command, "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "EditText of letters"
    sizes = ["--only", "EditText of letters", "--width", "64", "--steps", "2", "--seeds", "3", "--held-out", "2"]
    assert main([*command, *sizes]) == 0
    printed = capsys.readouterr().out
    assert "EditText of letters minus the whole recipe" in printed and "ablation.json" in printed.splitlines()[-1]
    assert main(["verify", store]) == 0
    assert main(["report", store]) == 0
    report = json.loads((tmp_path / "store" / "report.json").read_bytes())
    (panel,) = [panel for panel in report["panels"] if panel["id"] == "ablation"]
    assert panel["tables"][0]["rows"][0][:2] == ["EditText of letters", "not told apart"]


def test_part_whose_name_has_the_source_already_names_it_once(raw: Path) -> None:
    pages = deduplicate_urls(read_jsonl(raw, source="w1", columns={"url": "url"}), name="URLs w1")
    again = deduplicate_urls(pages, name="again")
    phase = Phase("main", tokens=100, weights={"w1": 1})
    whole = Outputs(Mixture(tokenize(again, train_tokenizer(again, 270), by="source"), phase))
    assert [part.name for part in parts_of(whole)] == ["URLs w1", "again of w1"]


def test_refusal_of_a_transform_that_names_itself_names_it_once(raw: Path) -> None:
    pages = read_warc(raw, source="pages").apply(NormalizeText())
    with pytest.raises(ConfigurationError, match=r"^NormalizeText needs the column 'text'"):
        compile_stages({"pages": pages})
