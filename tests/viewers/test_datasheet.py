"""The datasheet on the page and `croissant.json` beside it: what is told, what is not, and nothing invented."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from curate import ConfigurationError, Datasheet, Outputs
from curate.command_line import main
from curate.recipes.datasheet import MOST, QUESTIONS
from curate.run import open_result
from curate.store import Store
from tests.viewers.parsed import parse
from tests.viewers.sheet_store import SHEET, make_sheet_store
from tests.viewers.stores import HOSTILE, Made, report, stage
from viewers.croissant import REQUIRED, croissant_json, files_of, missing
from viewers.loading import Report, load_report
from viewers.provenance import ProvenanceView
from viewers.report import compose
from viewers.visible import HIDDEN


@pytest.fixture(scope="module")
def loaded(sheep: Made) -> Report:
    return load_report(Store(sheep.root), sheep.folder)


@pytest.fixture(scope="module")
def croissant(sheep: Made) -> dict[str, Any]:
    assert main(["report", str(sheep.root)]) == 0
    found: dict[str, Any] = json.loads((sheep.root / "croissant.json").read_bytes())
    return found


def panel(of: Report) -> dict[str, Any]:
    (found,) = [p for p in json.loads(compose(of).data)["panels"] if p["id"] == "datasheet"]
    return dict(found)


def test_datasheet_answers_stand_beside_questions_and_the_others_are_not_answered(loaded: Report) -> None:
    told, counted, _ = panel(loaded)["tables"]
    rows = {question: answer for _, question, answer in told["rows"]}
    assert [row[1] for row in told["rows"]] == [question.text for question in QUESTIONS]
    answered = {q.text: getattr(SHEET, q.field) for q in QUESTIONS if getattr(SHEET, q.field)}
    assert len(answered) == 4 and all(HIDDEN.sub("", text)[:6] in rows[q] for q, text in answered.items())
    assert {rows[q.text] for q in QUESTIONS if q.text not in answered} == {"not answered"}
    assert ["How many documents are there?", "40 documents in sheep", "Verdicts"] in counted["rows"]


def test_datasheet_names_gaps_of_the_recipe_and_of_checks_as_text(loaded: Report) -> None:
    root = parse(compose(loaded).page.decode()).one("section", id="datasheet")
    items = [item.text for item in root.all("li")]
    assert items[:2] == list(SHEET.gaps)
    assert any(item.startswith("Were duplicates looked for?") for item in items[2:])


def test_datasheet_of_a_recipe_without_one_answers_nothing() -> None:
    told = panel(report(stage()))
    assert {row[2] for row in told["tables"][0]["rows"]} == {"not answered"}


@pytest.mark.parametrize("text", HOSTILE)
def test_datasheet_hostile_answers_are_shown_as_text(text: str) -> None:
    made = compose(replace(report(stage()), datasheet=Datasheet(purpose=text, gaps=(text,), name=text)))
    assert not HIDDEN.search(made.data.decode())
    parse(made.page.decode())
    json.loads(croissant_json(replace(report(stage()), datasheet=Datasheet(purpose=text, name=text)), []))


def test_datasheet_another_one_makes_another_result_of_the_same_content(sheep: Made, tmp_path: Path) -> None:
    made = make_sheet_store(tmp_path, replace(SHEET, purpose="Something else."))
    assert made.result.digest == sheep.result.digest
    assert made.folder != sheep.folder
    assert make_sheet_store(tmp_path, replace(SHEET, purpose="Something else.")).folder == made.folder


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"purpose": 3}, r"purpose=…\) takes text"),
        ({"purpose": "x" * (MOST + 1)}, "up to 10,000"),
        ({"gaps": "one"}, "takes up to 200 sentences"),
        ({"published": "1 March"}, "takes a day, as '2026-03-01'"),
    ],
)
def test_datasheet_wrong_answers_are_refused(given: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        Datasheet(**given)


def test_outputs_refuse_a_datasheet_that_is_none() -> None:
    with pytest.raises(ConfigurationError, match="takes a Datasheet"):
        Outputs(datasheet={"purpose": "x"})  # type: ignore[arg-type]


def test_croissant_has_what_the_format_requires(croissant: dict[str, Any], loaded: Report) -> None:
    assert croissant["@type"] == "sc:Dataset"
    assert croissant["conformsTo"][0] == "http://mlcommons.org/croissant/1.0"
    assert croissant["@context"]["cr"] == "http://mlcommons.org/croissant/"
    assert set(REQUIRED) <= set(croissant) and missing(loaded) == []
    assert croissant["license"] == SHEET.licence and croissant["inLanguage"] == ["de", "en"]
    assert croissant["identifier"] == f"blake3:{loaded.content}"
    (files,) = croissant["distribution"]
    assert files["@type"] == "cr:FileSet" and files["encodingFormat"] == "application/x-parquet"


def test_croissant_files_hold_the_documents_and_fields_their_columns(croissant: dict[str, Any], sheep: Made) -> None:
    (files,), (records,) = croissant["distribution"], croissant["recordSet"]
    tables = [pq.read_table(sheep.root / path) for path in files["includes"]]
    assert sum(table.num_rows for table in tables) == 40
    for field in records["field"]:
        assert field["source"]["fileSet"] == {"@id": files["@id"]}
        assert field["source"]["extract"]["column"] in tables[0].schema.names
        assert field["@id"].startswith(f"{records['@id']}/") and field["dataType"].startswith("sc:")
    types = {field["name"]: field["dataType"] for field in records["field"]}
    assert types["text"] == "sc:Text" and types["n"] == "sc:Integer" and types["crawled_at"] == "sc:DateTime"


def test_croissant_of_a_recipe_without_a_datasheet_invents_nothing(trained: Made) -> None:
    bare = load_report(Store(trained.root), trained.folder)
    files = files_of(open_result(Store(trained.root), trained.folder))
    made = json.loads(croissant_json(bare, files))
    assert missing(bare) == ["license", "url", "creator", "datePublished"]
    assert not {"license", "url", "creator", "datePublished", "version", "citeAs"} & set(made)
    assert [found["@id"] for found in made["recordSet"]] == ["training", "validation"]
    assert croissant_json(bare, files) == croissant_json(bare, files)
    facts = dict(pair for told in panel(bare)["facts"] for pair in told)
    assert facts["Not told to catalogues"] == "license, url, creator, datePublished"


def test_datasheet_shows_the_recipe_its_files_and_the_version_as_text(loaded: Report) -> None:
    assert loaded.provenance is not None
    recipe = {"name": HOSTILE, "file": "provenance/recipe-0.py", "digest": "0" * 64}
    told = ProvenanceView({**loaded.provenance.told, "recipe": recipe}, f"print(1)  # {HOSTILE}\n" * 2)
    root = parse(compose(replace(loaded, provenance=told)).page.decode()).one("section", id="datasheet")
    shown = root.one("details", **{"class": "recipe"})
    assert shown.one("summary").text.startswith("The recipe, ") and shown.one("pre").text.count("print(1)") == 2
    assert f"curate {loaded.provenance.told['curate']}" in root.text and "0" * 64 in root.text
    assert panel(loaded)["tables"][2]["rows"][0][:2] == ["sheep", 2]


def test_datasheet_of_an_earlier_version_says_what_is_not_recorded(loaded: Report) -> None:
    root = parse(compose(replace(loaded, provenance=None)).page.decode()).one("section", id="datasheet")
    assert "the text of its recipe" in root.all("li")[-1].text
