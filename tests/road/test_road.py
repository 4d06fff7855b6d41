"""The whole road: the same bytes whoever makes them, every token led back, every look at a batch the same."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from blake3 import blake3

from curate import ConfigurationError, Outputs, hold_out, tokenize, train_tokenizer
from curate.commands.tokens import tokenizer_of
from curate.digests import text_digest
from curate.receipts import read_manifest
from curate.recipes.compiling import compile_stages
from curate.run import Result, results_in
from curate.store import Store
from curate.upkeep.trace import replay, trace_token
from curate.upkeep.verify import verify
from mixtures import Chunks, Loader, Mixture, Phase, Plan, explain, locate
from tests.curate.corpus import ShuffledRunner, ledger, tasks, texts, write_lines
from tests.road.corpus import documents, road, run_road, text_of, tree
from transforms.minhash import shingle_sets

ROOT = Path(__file__).parents[2]


def loader_of(result: Result) -> Loader:
    return Loader(Plan.load(result.folder / "plan.json", result.plan), result.caches["training"].open())


def without_runs(result: Result) -> dict[str, str]:
    return tree(result.folder.parent)


# --- the same bytes --------------------------------------------------------------------------------------------------


def test_road_keeps_and_drops_what_it_should(finished: Result) -> None:
    reasons = Counter(row["reason"] for stage in finished.stages for row in ledger(stage, "dropped"))
    assert reasons["contamination: leak"] == 1 and reasons["equal text"] == 1 and reasons["near duplicate"] == 1
    assert reasons["held out"] == 24 and reasons["near duplicate of held-out text"] >= 3
    assert list(finished.caches) == ["training", "validation"] and finished.plan is not None
    assert finished.caches["training"].cells == finished.caches["validation"].cells == ("letters", "notes", "pages")


def test_road_made_with_other_chunks_and_shuffled_items_is_equal_byte_for_byte(
    raw: Path, finished: Result, tmp_path: Path
) -> None:
    other = run_road(raw, tmp_path / "store", ShuffledRunner(5), chunk_rows=7)
    assert without_runs(other) == without_runs(finished)
    assert (other.digest, other.plan) == (finished.digest, finished.plan)


def test_road_run_again_makes_nothing_and_is_the_same(raw: Path, finished: Result, tmp_path: Path) -> None:
    shutil.copytree(finished.folder.parent, tmp_path / "store")
    again = run_road(raw, tmp_path / "store")
    assert tasks(tmp_path / "store") == {} and without_runs(again) == without_runs(finished)


@pytest.mark.slow
def test_road_killed_at_points_of_its_token_stages_ends_in_the_same_store(
    raw: Path, finished: Result, tmp_path: Path
) -> None:
    store, training, validation = finished.folder.parent, finished.caches["training"], finished.caches["validation"]
    tokenizer = next(store.glob("train-tokenizer-*/tokenizer.json"))
    points = [  # in the order in which a run passes them
        f"{tokenizer.relative_to(store)}:linked",
        f"{training.place('pages').root.relative_to(store)}/tokens/c/0:spooled",
        f"{training.place('notes').root.relative_to(store)}/cache.json:linked",
        f"{training.folder}/manifest.json:spooled",
        f"{validation.place('letters').root.relative_to(store)}/cache.json:published",
        f"{finished.folder.name}/plan.json:linked",
        f"{finished.folder.name}/manifest.json:spooled",
    ]
    command = [sys.executable, "-m", "tests.road.kills", str(raw), str(tmp_path / "store"), *points]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert tree(tmp_path / "store") == without_runs(finished)


# --- verify ----------------------------------------------------------------------------------------------------------


def test_verify_of_the_whole_road_finds_nothing(finished: Result) -> None:
    found = verify(finished.folder.parent)
    assert found.ok and not found.notes and found.files == len(without_runs(finished))


def flip(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def test_verify_after_one_flipped_byte_in_caches_plan_or_tokenizer_names_the_file(
    finished: Result, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    shutil.copytree(finished.folder.parent, store)
    files = [path for path in sorted((store / "caches").rglob("*")) if path.is_file() and path.stat().st_size]
    descriptions = [path for path in files if path.name == "cache.json"]
    data = [path for path in files if path.name != "cache.json"]
    assert len(descriptions) == 6 and len(data) >= 6 * 4
    single = [store / finished.folder.name / "plan.json", *store.glob("train-tokenizer-*/tokenizer.json")]
    draw = random.Random(2)
    for group in (descriptions, data, *([path] for path in single), descriptions, data):
        before = {path: path.read_bytes() for path in group}
        for path in group:
            flip(path, draw)
        problems = verify(store).problems
        for path in group:
            assert any(path.relative_to(store).as_posix() in problem for problem in problems), path
            path.write_bytes(before[path])
    assert verify(store).ok


# --- from a token to its record --------------------------------------------------------------------------------------


def test_trace_of_200_random_tokens_replays_all_of_them(raw: Path, finished: Result) -> None:
    loader, caches, draw = loader_of(finished), finished.caches["training"], random.Random(11)
    plan, stages = loader.plan, compile_stages(road(root=raw).products)
    encoder, opened = tokenizer_of(caches).encoder(), caches.open()
    split = 0
    for _ in range(200):
        step, row = draw.randrange(plan.steps), draw.randrange(plan.batch)
        batch = loader.batch(step)
        token = draw.randrange(int((batch.segments[row] > 0).sum()))
        place = locate(plan, step, row, token)
        trace = trace_token(caches, place.component, place.token)
        assert trace.token_id == batch.tokens[row, token] == opened[place.component].read(place.token, place.token + 1)
        text = replay(stages, trace)
        assert text == trace.row["text"] and text_digest(text).hex() == trace.digest
        assert opened[place.component].text_digests()[trace.document].tobytes().hex() == trace.digest
        decoded = "" if trace.token_id == encoder.eos else encoder.decode([trace.token_id])
        if "\ufffd" in decoded:  # a part of a character's bytes: the token stands for the whole character
            split += 1
            assert not trace.characters.isascii() and len(trace.characters) <= 3
        else:
            assert text[trace.start : trace.end] == trace.characters == decoded
    assert split < 40


def test_trace_of_every_token_of_a_document_covers_its_text(finished: Result) -> None:
    caches = finished.caches["training"]
    cache = caches.open()["letters"]
    document = 4
    first, last = int(cache.starts[document]), int(cache.starts[document + 1])
    traces = [trace_token(caches, "letters", token) for token in range(first, last)]
    text = traces[0].row["text"]
    covered = {place for trace in traces for place in range(trace.start, trace.end)}
    assert covered == set(range(len(text))) and (traces[-1].start, traces[-1].end) == (len(text), len(text))
    assert [trace.position for trace in traces] == list(range(last - first))


# --- one function, many views ----------------------------------------------------------------------------------------


def test_explain_batch_and_loader_agree_at_every_step(finished: Result) -> None:
    loader = loader_of(finished)
    plan, opened = loader.plan, loader.caches
    for step, streamed in enumerate(loader.batches()):
        batch, told = loader.batch(step), explain(plan, step)
        assert len(told.rows) == len(batch) == plan.batch
        for row, place in enumerate(told.rows):
            tokens = opened[place.component].read(place.start, place.stop)
            assert batch.tokens[row, : len(tokens)].tolist() == tokens.tolist()
            assert (batch.segments[row] > 0).sum() == len(tokens)
            assert int(batch.sequences[row]) == place.sequence
            assert plan.components[int(batch.components[row])].name == place.component
        for array in ("tokens", "segments", "positions", "loss_mask", "sequences", "components"):
            np.testing.assert_array_equal(getattr(streamed, array), getattr(batch, array))


def test_batches_of_1_2_and_8_hosts_are_the_same_from_any_step(finished: Result) -> None:
    loader, draw = loader_of(finished), random.Random(5)
    for _ in range(40):
        step = draw.randrange(loader.plan.steps)
        whole = loader.batch(step)
        for hosts in (1, 2, 8):
            parts = [loader.slice(step, host, hosts) for host in range(hosts)]
            for array in ("tokens", "segments", "positions", "loss_mask", "sequences", "components"):
                joined = np.concatenate([getattr(part, array) for part in parts])
                np.testing.assert_array_equal(joined, getattr(whole, array))
            resumed = next(loader.batches(step, process=hosts - 1, processes=hosts))
            np.testing.assert_array_equal(resumed.tokens, parts[-1].tokens)


def test_digest_of_batches_in_the_manifest_is_that_of_the_loader(finished: Result) -> None:
    loader, hasher = loader_of(finished), blake3()
    for step in range(8):
        batch = loader.batch(step)
        for array in (batch.tokens, batch.segments, batch.positions):
            hasher.update(b"".join(int(value).to_bytes(4, "little") for value in array.reshape(-1)))
        hasher.update(bytes(batch.loss_mask.reshape(-1).tolist()))
    manifest = read_manifest(Store(finished.folder.parent), finished.folder.name)
    assert manifest["plan"] == {"digest": finished.plan, "batches": {"batches 0-8": hasher.hexdigest()}}


# --- training and validation -----------------------------------------------------------------------------------------


def shingles(found: list[str]) -> list[set[int]]:
    sets = shingle_sets(pa.array(found, pa.large_string()), 5)
    return [set(sets.values[start:stop].tolist()) for start, stop in pairwise(sets.offsets.tolist())]


def test_training_and_validation_share_no_text_and_no_near_pair(finished: Result) -> None:
    train, valid = texts(finished.outputs["train"]), texts(finished.outputs["valid"])
    assert train and valid and not set(train) & set(valid)
    pairs = [(a, b) for a in shingles(train) for b in shingles(valid)]
    assert max(len(a & b) / len(a | b) for a, b in pairs) < 0.8
    dropped = [row for row in ledger(finished.outputs["train"], "dropped") if row["reason"].startswith("near")]
    assert dropped  # without holding near ones out there would be such pairs
    digests: list[set[bytes]] = [
        {row.tobytes() for cache in caches.open().values() for row in cache.text_digests()}
        for caches in (finished.caches["training"], finished.caches["validation"])
    ]
    assert digests[0] == {text_digest(text) for text in train} and digests[1] == {text_digest(text) for text in valid}


def test_mixture_whose_validation_shares_a_text_with_training_is_refused(
    raw: Path, finished: Result, tmp_path: Path
) -> None:
    shutil.copytree(finished.folder.parent, tmp_path / "store")
    clean = documents(raw)
    train, valid = hold_out(clean, documents=9, per="source")
    tokenizer = train_tokenizer(train, 512)
    everything = tokenize(clean, tokenizer, by="source", name="tokenize all")
    mixture = Mixture(everything, Phase("main", tokens=5_000, weights={}, others=1), sequences=Chunks(32), batch=8)
    held = tokenize(valid, tokenizer, by="source", name="tokenize valid")
    with pytest.raises(ConfigurationError, match="validation"):
        run_road(raw, tmp_path / "store", outputs=Outputs(mixture, validation=held))
    assert results_in(Store(tmp_path / "store")) == [finished.folder.name]


# --- what a change changes -------------------------------------------------------------------------------------------


@pytest.fixture
def copied(raw: Path, finished: Result, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the corpus and of the finished store, to change."""
    shutil.copytree(raw, tmp_path / "raw")
    shutil.copytree(finished.folder.parent, tmp_path / "store")
    return tmp_path / "raw", tmp_path / "store"


def test_file_added_is_the_only_one_read_and_changes_what_is_made_of_all(
    copied: tuple[Path, Path], finished: Result
) -> None:
    root, store = copied
    write_lines(root / "pages" / "z.jsonl", [{"text": text_of(n)} for n in (300, 301, 302)])
    added = run_road(root, store)
    done = tasks(store)
    assert done["pages"] == ["z.jsonl"] and "letters" not in done and "notes" not in done
    assert {"deduplicate", "decontaminate", "train", "valid", "tokenize: finish"} <= set(done)
    assert (added.digest, added.plan) != (finished.digest, finished.plan)
    assert added.outputs["documents"].rows == finished.outputs["documents"].rows + 3
    assert verify(store).ok and len(results_in(Store(store))) == 2


def test_file_renamed_leaves_texts_tokens_plan_and_batches_as_they_were(
    copied: tuple[Path, Path], finished: Result
) -> None:
    root, store = copied
    (root / "pages" / "x.jsonl").rename(root / "pages" / "zz.jsonl")
    renamed = run_road(root, store)
    assert tasks(store)["pages"] == ["zz.jsonl"]
    assert sorted(texts(renamed.outputs["documents"])) == sorted(texts(finished.outputs["documents"]))
    assert renamed.plan == finished.plan
    manifests: list[dict[str, Any]] = [
        read_manifest(Store(result.folder.parent), result.folder.name) for result in (renamed, finished)
    ]
    assert manifests[0]["plan"] == manifests[1]["plan"]


def test_weight_changed_makes_another_plan_and_nothing_else(copied: tuple[Path, Path], finished: Result) -> None:
    root, store = copied
    changed = run_road(root, store, outputs=road(root=root, second=5.0))
    assert tasks(store) == {} and changed.plan != finished.plan and changed.digest != finished.digest
    new = set(tree(store)) - set(without_runs(finished))
    assert new == {
        f"{changed.folder.name}/{name}" for name in ("plan.json", "manifest.json", "provenance/inputs.jsonl")
    }
