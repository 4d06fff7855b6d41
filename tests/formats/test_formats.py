"""Stores of every version of the formats are opened by today's readers, for ever.

A frozen store is never made again. A test that fails here says that a reader lost a version: give its `Format` a step.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from curate import receipts
from curate.accounting.quarantine import read_quarantine
from curate.caches.cache import TokenCache
from curate.caches.tokenization import stored_tokenizer
from curate.digests import digest_file, text_digest
from curate.receipts import MANIFEST, RECEIPT, STATISTICS, Receipt, read_receipt
from curate.run import Result, open_result, results_in
from curate.store import Store, json_line
from curate.upkeep.trace import trace_token
from curate.upkeep.verify import verify
from mixtures import Loader, Plan, explain, locate
from mixtures.batch_digest import batch_digest
from trainers.checkpoint import FORMAT, CheckpointError, Checkpoints
from trainers.config import unflat
from trainers.log import read_log
from trainers.saved import open_model
from trainers.state import digest, restore
from transforms.tokens import Tokenizer
from viewers import write_report

FOLDER = Path(__file__).parent
FROZEN = {
    "1": "70713f86ffce0f5f137b37251b626600d72a1307082bed7b111c0ff02d2de291",
    "2": "d4a6e6cf5df9d9e650c9ca3c33a1775510a5e81b86a228e6a3de42947cc5a9a1",
}
"""Number → digest of the archive."""

CHECKPOINTS = {
    "2": (
        "646d2c12fe0ce5a5c3e7bde56628c20e1d0cbc9ffef554fafd7ab666e685bfbb",
        "0427622150d78915ca8d09098f9fe0a4de6789ff5687661e900b30309e18ce8c",
    )
}
"""Number of the format → digest of the archive, and of the state that was read from it when it was frozen."""

RESULT = {
    "1": {
        "digest": "64b3b5f8b8780dda943b2625c2905b1829b505b3786dd580069f5672fda4d77f",
        "documents": {"letters": 9, "read pages": 4, "pages": 4, "deduplicate": 9, "train": 7, "valid": 2},
        "ledger": {"letters": 24, "read pages": 4, "pages": 1, "deduplicate": 4, "train": 2, "valid": 0},
        "samples": {"letters": 29, "read pages": 4, "pages": 5, "deduplicate": 12, "train": 9, "valid": 2},
        "plan": "dc3f6e7de3f397f77ff5b97d97a637b9b6ffa572decbdd411effd1c12294026e",
        "batches": "0dc0579316355c30ffa27b2dc74058a3520492e4bc24878c16f0aa74263d9d98",
        "state": "871d98cdd81d7576ad530b52c16a419e432a0bc2350b73b832e7a6c4e1b0f5aa",
        "shown": ["letters", "pages"],
    },
    "2": {
        "digest": "fc7ed8b483e350139bd76f3a24954c1d3892f96742bd5946e391c939265979c7",
        "documents": {
            "letters": 9, "compact letters": 9, "read pages": 4, "pages": 4, "compact pages": 4,
            "deduplicate": 9, "train": 7, "valid": 2,
        },
        "ledger": {
            "letters": 25, "compact letters": 0, "read pages": 4, "pages": 0, "compact pages": 0,
            "deduplicate": 4, "train": 2, "valid": 0,
        },
        "samples": {
            "letters": 31, "compact letters": 8, "read pages": 4, "pages": 4, "compact pages": 4,
            "deduplicate": 17, "train": 9, "valid": 2,
        },
        "plan": "108d542fc0b8908744a252d049c19fb4e40c6aefdc241123e8ca6b7246603b26",
        "batches": "51ab0a8c9eec8241384ce8012ddad5d4fce204db285a781cf29fee5eadc24ef6",
        "state": "ba427d5bafd66af0986decb0ca92230a60a1fc74a6fc7f73621a933912d8ece6",
        "shown": ["letters", "pages"],
    },
}  # fmt: skip
"""What was read from each when it was frozen."""


@pytest.fixture(scope="module", params=sorted(FROZEN))
def frozen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    number = request.param
    archive = FOLDER / f"{number}.tar.xz"
    assert digest_file(archive) == FROZEN[number], "a frozen store was changed: it must stay what was written then"
    place = tmp_path_factory.mktemp(f"format{number}")
    with tarfile.open(archive) as file:
        file.extractall(place, filter="data")
    return number, place


@pytest.fixture(scope="module")
def store(frozen: tuple[str, Path]) -> Store:
    return Store(frozen[1] / "store")


@pytest.fixture(scope="module")
def expected(frozen: tuple[str, Path]) -> dict[str, Any]:
    return RESULT[frozen[0]]


@pytest.fixture(scope="module")
def result(store: Store) -> Result:
    (folder,) = results_in(store)
    return open_result(store, folder)


def _plan(store: Store, result: Result) -> Plan:
    return Plan.load(store.path(f"{results_in(store)[0]}/plan.json"), result.plan)


def test_frozen_store_verifies(store: Store) -> None:
    found = verify(store.root)
    assert found.problems == []
    assert found.files > 200


def test_frozen_result_opens_with_its_digests(result: Result, expected: dict[str, Any]) -> None:
    assert result.digest == expected["digest"]
    assert result.plan == expected["plan"]


def test_frozen_datasets_ledgers_and_samples_are_read(result: Result, expected: dict[str, Any]) -> None:
    stages = {dataset.name: dataset for dataset in result.stages}
    assert {name: dataset.rows for name, dataset in stages.items()} == expected["documents"]
    ledger = {name: sum(batch.num_rows for batch in dataset.ledger()) for name, dataset in stages.items()}
    assert ledger == expected["ledger"]
    assert {name: len(dataset.samples()) for name, dataset in stages.items()} == expected["samples"]
    for dataset in stages.values():
        assert sum(batch.num_rows for batch in dataset.batches(["id"])) == dataset.rows
        assert dataset.statistics["texts"]["count"] == dataset.manifest["texts"]["count"]


def test_frozen_receipts_and_quarantine_list_are_read(store: Store, result: Result) -> None:
    letters = next(dataset for dataset in result.stages if dataset.name == "letters")
    shard = letters.shards()[0]
    receipt = read_receipt(store, shard["key"])
    assert receipt is not None
    assert receipt.digest == shard["receipt"]
    (verdict,) = read_quarantine(store, shard["key"]).verdicts.values()
    assert (verdict.reason, verdict.transform) == ("crashed", "MaskPII")
    dropped = [row for batch in letters.ledger() for row in batch.to_pylist() if row["id"] == verdict.id]
    assert [row["reason"] for row in dropped] == ["quarantined: crashed"]


def test_frozen_caches_are_read_with_their_tokenizer(store: Store, result: Result) -> None:
    for caches in result.caches.values():
        for cell, cache in caches.open().items():
            description = cache.description
            path = stored_tokenizer(store, description.tokenizer)
            tokenizer = Tokenizer(path, bos=description.bos_text, eos=description.eos_text)
            again = TokenCache.open(caches.place(cell).root, tokenizer, cache.digest)
            assert again.verify() == []
            assert sum(len(document) for document in again) == cache.tokens


def test_frozen_plan_gives_the_batches_of_then(store: Store, result: Result, expected: dict[str, Any]) -> None:
    plan = _plan(store, result)
    caches = result.caches["training"].open()
    assert batch_digest(plan, caches, 0, 8) == expected["batches"]
    assert len(explain(plan, 3).rows) == plan.batch
    assert Loader(plan, caches).batch(0).tokens.shape == (2, 16)


def test_frozen_token_is_traced_to_its_document(store: Store, result: Result) -> None:
    place = locate(_plan(store, result), 1, 0, 3)
    trace = trace_token(result.caches["training"], place.component, place.token)
    assert text_digest(trace.row["text"]).hex() == trace.digest
    assert trace.row["source"] == place.component


def test_frozen_checkpoint_is_read_or_refused_with_what_to_do_and_its_log_is_read(
    frozen: tuple[str, Path], expected: dict[str, Any]
) -> None:
    checkpoints = Checkpoints(frozen[1] / "run")
    assert checkpoints.steps() == [4]
    if frozen[0] == "1":
        with pytest.raises(CheckpointError, match=r"checkpoint 1, .*reads format curate checkpoint 2: go on with"):
            checkpoints.load(4)
    else:
        assert checkpoints.load(4).state == expected["state"]
    log = read_log(frozen[1] / "run")
    assert [line["step"] for line in log.train] == [0, 1, 2, 3]
    assert log.checkpoints[-1]["state"] == expected["state"]


@pytest.mark.parametrize("number", sorted(CHECKPOINTS))
def test_frozen_checkpoint_is_read_and_its_state_restored(number: str, tmp_path: Path) -> None:
    archive, state = FOLDER / f"checkpoint-{number}.tar.xz", CHECKPOINTS[number][1]
    assert digest_file(archive) == CHECKPOINTS[number][0], "a frozen checkpoint was changed"
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    stored = Checkpoints(tmp_path / "run").load(2)
    assert stored.state == state
    assert digest(restore(unflat(stored.config), stored.arrays)) == state
    saved = open_model(tmp_path / "run", weights="average")
    assert (saved.step, saved.plan, saved.bias.shape) == (2, "markov 0 0.1 5", (1, 4))


def test_every_format_of_checkpoints_that_can_be_read_is_frozen() -> None:
    oldest = FORMAT.number - len(FORMAT.steps)
    assert {str(number) for number in range(oldest, FORMAT.number + 1)} <= set(CHECKPOINTS), (
        "checkpoints have a new number: freeze one with python -m tests.formats.make checkpoint NUMBER"
    )


def test_frozen_store_has_its_report(
    frozen: tuple[str, Path], store: Store, tmp_path: Path, expected: dict[str, Any]
) -> None:
    page = write_report(store, results_in(store)[0], tmp_path / "report.html", runs=[frozen[1] / "run"])
    text = page.read_text("utf-8")
    assert expected["digest"] in text
    assert all(shown in text for shown in expected["shown"])


def test_previous_receipt_keeps_the_digest_that_lists_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that goes up by one: what lists a lifted receipt lists it by the digest of its file."""
    written = Receipt("k" * 64, "documents", {}, {}).to_json()
    store = Store(tmp_path)
    store.publish_bytes(json_line(written), "shards/kkkkkkkkkkkkkkkk/receipt.json")

    def step(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "task": value["task"].upper()}

    monkeypatch.setattr(receipts, "RECEIPT", receipts.Format(RECEIPT.number + 1, "run again", (*RECEIPT.steps, step)))
    lifted = read_receipt(store, "k" * 64)
    assert lifted is not None
    assert lifted.task == "DOCUMENTS"
    assert lifted.digest == written["digest"]
    assert lifted.to_json()["format"] == RECEIPT.number + 1


def test_every_number_that_went_up_left_a_frozen_store() -> None:
    highest = max(form.number for form in (RECEIPT, MANIFEST, STATISTICS))
    assert {str(number) for number in range(1, highest)} <= set(FROZEN), (
        "a format has a new number: freeze a store of the one before with tests/formats/make.py"
    )
