"""Verdicts of a shard: found, listed, read first by whoever comes next, passed to other stores."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from curate import ConfigurationError, Outputs, read_jsonl
from curate.accounting.accountant import Step
from curate.accounting.quarantine import (
    Verdict,
    all_lists,
    quarantine_list,
    quarantine_name,
    read_lists,
    read_quarantine,
    write_quarantine,
)
from curate.cluster.runner import RayRunner
from curate.isolation.guard import CHILD_BYTES, GuardedShard, Isolation, Settled
from curate.isolation.limits import Limits
from curate.receipts import Receipt, publish_receipt
from curate.run import run
from curate.running.jobs import TaskError
from curate.store import Store, StoreError
from curate.upkeep.verify import verify
from tests.curate.corpus import ledger, run_on, sentence, texts, write_lines
from tests.curate.isolation.poison import KEY, LIMITS, Poison, applied, guarded, texts_with
from transforms.pii import MaskPII

FAST = {"document_seconds": LIMITS.seconds, "document_memory": LIMITS.memory}
POISONED = {3: "do segfault", 11: "do fail a@mail.example.net", 20: "do leave"}


def recipe(root: Path, deeds: dict[int, str] | None = None) -> Outputs:
    """Write two files of texts, the first with `deeds`, and return a recipe that reads them."""
    for name, mine in (("a", POISONED if deeds is None else deeds), ("b", {})):
        lines = [{"text": mine.get(n, sentence(n))} for n in range(30)]
        write_lines(root / "in" / f"{name}.jsonl", lines)
    return Outputs(texts=read_jsonl(root / "in", source="pages").apply(Poison(), name="poisoned"))


def tree(store: Path) -> dict[str, bytes]:
    """Return the content of every file of a store but what nothing hashes."""
    files = {path.relative_to(store).as_posix(): path for path in sorted(store.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(("runs/", "spool/"))}


@pytest.fixture(scope="module")
def poisoned(memory: Path) -> Path:
    """A store in which three documents were quarantined; nobody writes to it."""
    root = memory / "poisoned"
    run(recipe(root), root / "store", runner="local", **FAST)
    return root


def test_run_over_poison_keeps_the_rest_and_accounts_for_each_verdict(poisoned: Path) -> None:
    result = run(recipe(poisoned), poisoned / "store", runner="local", **FAST)
    (dataset,) = result.stages
    assert dataset.rows == 57
    assert texts(dataset)[:4] == [sentence(n).upper() for n in (0, 1, 2, 4)]
    rows = [(row["reason"], row["transform"], row["evidence"]) for row in ledger(dataset, "dropped")]
    assert rows == [
        ("quarantined: crashed", "Poison", '{"signal":"SIGSEGV"}'),
        ("quarantined: raised", "Poison", '{"message":"cannot bear <email> at 0x…","type":"ValueError"}'),
        ("quarantined: crashed", "Poison", '{"exit status":3}'),
    ]
    assert dataset.manifest["quarantine"] is not None
    assert verify(poisoned / "store").problems == []


def test_run_again_after_losing_the_shard_takes_the_verdicts_from_the_list(
    poisoned: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, content in tree(poisoned / "store").items():
        if name.startswith("quarantine/"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(content)
    with caplog.at_level(logging.WARNING):
        run(recipe(poisoned), tmp_path, runner="local", **FAST)
    assert not caplog.records  # nobody met the poison
    assert tree(tmp_path) == tree(poisoned / "store")


def test_run_with_the_list_of_another_run_gives_the_same_bytes(
    poisoned: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "list.jsonl").write_bytes(all_lists(Store(poisoned / "store")))
    with caplog.at_level(logging.WARNING):
        run(recipe(poisoned), tmp_path / "store", runner="local", quarantine=[tmp_path / "list.jsonl"], **FAST)
    assert not caplog.records
    assert tree(tmp_path / "store") == tree(poisoned / "store")


@pytest.mark.ray
def test_run_over_poison_on_ray_gives_the_same_bytes(poisoned: Path, tmp_path: Path, ray_of_two: RayRunner) -> None:
    run_on(recipe(poisoned), tmp_path, ray_of_two)
    assert tree(tmp_path) == tree(poisoned / "store")


def test_list_for_a_shard_that_was_made_without_it_is_refused_before_anything_is_done(
    poisoned: Path, tmp_path: Path
) -> None:
    outputs = recipe(tmp_path, {3: "text"})
    result = run(outputs, tmp_path / "store", runner="local", **FAST)
    shard = result.stages[0].shards()[0]["key"]
    verdict = Verdict(bytes(16), "hung", "Poison", '{"seconds":"30"}')
    (tmp_path / "list.jsonl").write_bytes(quarantine_list(shard, [verdict]))
    with pytest.raises(ConfigurationError, match="already, without the verdicts of the quarantine list"):
        run(outputs, tmp_path / "store", runner="local", quarantine=[tmp_path / "list.jsonl"])


def test_step_that_raises_for_most_documents_stops_the_run_with_one_error(tmp_path: Path) -> None:
    outputs = recipe(tmp_path, dict.fromkeys(range(0, 30, 2), "do fail always"))
    with pytest.raises(
        TaskError, match=r"poisoned, a\.jsonl: TooManyRaised: Poison: 11 of .* ValueError.*|.*cannot bear"
    ):
        run(outputs, tmp_path / "store", runner="local", **FAST)
    assert not list((tmp_path / "store").glob("quarantine/*")) and not list(
        (tmp_path / "store").glob("*/manifest.json")
    )


@pytest.mark.parametrize("limits", [{"document_seconds": 0}, {"document_memory": 5}])
def test_limits_that_are_none_are_refused(limits: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="at least 1 MiB"):
        run(recipe(tmp_path), tmp_path / "store", runner="local", **limits)


# --- two attempts ----------------------------------------------------------------------------------------------------

VERDICT = Verdict((3).to_bytes(16, "big"), "crashed", "Poison", '{"signal":"SIGSEGV"}')
OTHER = replace(VERDICT, id=(5).to_bytes(16, "big"))


def attempt(store: Path) -> GuardedShard:
    """Return a shard whose documents have been through the step, the fourth of which crashed."""
    shard = guarded(store)
    applied(shard, texts_with(8, {3: "do segfault"}))
    return shard


def test_attempt_publishes_its_verdicts_and_then_its_shard(tmp_path: Path) -> None:
    shard = attempt(tmp_path)
    assert shard.settle() is Settled.PUBLISH
    listed = read_quarantine(Store(tmp_path), KEY)
    assert (list(listed.verdicts.values()), listed.digest) == ([VERDICT], shard.digest)


def test_attempt_that_finds_another_list_does_the_shard_again_with_it(tmp_path: Path) -> None:
    shard = attempt(tmp_path)
    write_quarantine(Store(tmp_path), KEY, [VERDICT, OTHER])
    assert shard.settle() is Settled.AGAIN
    again = guarded(tmp_path)
    assert applied(again, texts_with(8, {3: "do segfault"})).kept.num_rows == 6
    assert (again.settle(), again.digest) == (Settled.PUBLISH, read_quarantine(Store(tmp_path), KEY).digest)


def test_attempt_without_verdicts_that_finds_a_list_does_the_shard_again(tmp_path: Path) -> None:
    shard = guarded(tmp_path)
    applied(shard, texts_with(8, {}))
    write_quarantine(Store(tmp_path), KEY, [OTHER])
    assert shard.settle() is Settled.AGAIN


def test_attempt_with_verdicts_that_finds_the_shard_made_leaves_it_as_it_is(tmp_path: Path) -> None:
    shard = attempt(tmp_path)
    publish_receipt(Store(tmp_path), Receipt(KEY, "poisoned", {}, {}))
    assert shard.settle() is Settled.DONE
    assert not (tmp_path / quarantine_name(KEY)).exists()


def test_attempt_that_finds_more_than_the_list_that_it_read_is_an_error(tmp_path: Path) -> None:
    write_quarantine(Store(tmp_path), KEY, [OTHER])
    with pytest.raises(StoreError, match="was there before, and 1 more documents could not be processed"):
        attempt(tmp_path).settle()


# --- lists that are passed in ----------------------------------------------------------------------------------------


def test_passed_list_and_what_is_found_make_one_list(tmp_path: Path) -> None:
    shard = guarded(tmp_path, passed={KEY: {OTHER.id: OTHER}, "6" * 64: {VERDICT.id: VERDICT}})
    assert applied(shard, texts_with(8, {3: "do segfault", 5: "do leave"})).kept.num_rows == 6
    assert shard.settle() is Settled.PUBLISH
    assert list(read_quarantine(Store(tmp_path), KEY).verdicts.values()) == [VERDICT, OTHER]


def test_passed_list_that_the_list_in_the_store_contradicts_is_an_error(tmp_path: Path) -> None:
    write_quarantine(Store(tmp_path), KEY, [VERDICT])
    with pytest.raises(StoreError, match="other verdicts than the list that was passed in"):
        guarded(tmp_path, passed={KEY: {OTHER.id: OTHER}})


def test_lists_of_several_stores_are_read_together_and_may_not_contradict(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(quarantine_list(KEY, [VERDICT]) + quarantine_list("6" * 64, [OTHER]))
    (tmp_path / "b").write_bytes(quarantine_list(KEY, [VERDICT, OTHER]))
    (tmp_path / "c").write_bytes(quarantine_list(KEY, [replace(VERDICT, reason="hung")]))
    found = read_lists([tmp_path / "a", tmp_path / "b"])
    assert {key: sorted(verdicts) for key, verdicts in found.items()} == {
        KEY: [VERDICT.id, OTHER.id],
        "6" * 64: [OTHER.id],
    }
    with pytest.raises(ConfigurationError, match="other than a list before it"):
        read_lists([tmp_path / "a", tmp_path / "c"])
    with pytest.raises(ConfigurationError, match="--quarantine takes quarantine lists"):
        read_lists([tmp_path / "d"])


def test_lists_of_the_first_format_name_no_shard_and_are_read_in_their_store_only(tmp_path: Path) -> None:
    line = b'{"evidence":null,"id":"%s","reason":"crashed","transform":"Poison"}\n' % VERDICT.id.hex().encode()
    (tmp_path / "quarantine").mkdir()
    (tmp_path / quarantine_name(KEY)).write_bytes(line)
    assert list(read_quarantine(Store(tmp_path), KEY).verdicts) == [VERDICT.id]
    with pytest.raises(ConfigurationError, match="line 1 is not a quarantine verdict: shard None"):
        read_lists([tmp_path / quarantine_name(KEY)])


def test_tasks_that_isolate_declare_the_memory_of_their_child_and_others_none() -> None:
    assert Isolation().guard([Step("Poison", Poison())]).memory == CHILD_BYTES
    assert Isolation().guard([Step("MaskPII", MaskPII())]).memory == 0


def test_suspects_get_ten_times_the_limits_and_at_most_half_of_the_memory() -> None:
    alone = Limits(2.0, 4 << 20).alone()
    assert (alone.seconds, alone.memory) == (20.0, 40 << 20)
    assert Limits(1.0, 1 << 50).alone().memory < 1 << 45
