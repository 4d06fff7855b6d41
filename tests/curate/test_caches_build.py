"""Building token caches: the same documents give the same tokens in any layout, on any runner, after any kill."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from curate import Outputs, exchange
from curate.caches import CacheError, OtherTokenizerError, TokenCache, encode
from curate.caches import values as by_value
from curate.caches.counting import LONGEST, count_used, named_longest
from curate.caches.encode import TokensJob
from curate.caches.layout import LAYOUT
from curate.caches.plan import MOST_CELLS, Plan, cache_folder, cell_name
from curate.caches.tokenization import make_cells, stored_tokenizer
from curate.cluster.runner import RayRunner
from curate.configuration import ConfigurationError
from curate.digests import digest_file, text_digest
from curate.exchange import LIMITS
from curate.running.jobs import Item
from curate.store import POINTS, Store
from tests.curate.corpus import ShuffledRunner, run_on, tree, write_lines
from tests.curate.token_corpus import (
    BEGIN,
    END,
    SMALL,
    Built,
    build,
    by_definition,
    dataset_of,
    described,
    lines,
    write_tokenizer,
)
from transforms.token_training import train_bpe
from transforms.tokens import Tokenizer

DOCUMENTS = lines()


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return Tokenizer(write_tokenizer(tmp_path), bos=BEGIN, eos=END)


@pytest.fixture
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "LIMITS", replace(LIMITS, partition_bytes=700, most_partitions=5, fan_in=3))
    monkeypatch.setattr(encode, "ROWS", 7)
    monkeypatch.setattr(encode, "ENCODE_BYTES", 300)


def documents_of(cache: TokenCache) -> list[list[int]]:
    return [cache[i].tolist() for i in range(len(cache))]


def test_cache_holds_every_document_in_the_order_of_the_format(tmp_path: Path, tokenizer: Tokenizer) -> None:
    built = build(dataset_of(tmp_path, DOCUMENTS), tokenizer)
    (cache,) = built.caches.values()
    expected = by_definition(DOCUMENTS, tokenizer)
    assert cache.name == "all" and documents_of(cache) == expected
    assert cache.read(0, cache.tokens).tolist() == [index for ids in expected for index in ids]
    assert cache.read(0, 3).dtype == np.uint16
    assert cache.verify() == []


def test_cells_hold_the_documents_with_their_values(tmp_path: Path, tokenizer: Tokenizer) -> None:
    dataset = dataset_of(tmp_path, DOCUMENTS, files=3)
    built = build(dataset, tokenizer, by=("topic", "level", "sure"), layout=SMALL)
    names = {
        f"topic={line['topic'] or 'null'}/level={line['level']}/sure={str(line['sure']).lower()}" for line in DOCUMENTS
    }
    assert set(built.caches) == names and len(names) > 8
    for name, cache in built.caches.items():
        mine = [
            line
            for line in DOCUMENTS
            if name == f"topic={line['topic'] or 'null'}/level={line['level']}/sure={str(line['sure']).lower()}"
        ]
        assert documents_of(cache) == by_definition(mine, tokenizer)
        assert cache.verify() == []
    assert list(build(dataset, tokenizer, by=("topic",)).caches) == ["law/old", "news", "null"]


@pytest.mark.usefixtures("small_partitions")
def test_tokens_do_not_depend_on_files_their_order_or_partitions(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents, texts, ids = [], [], []
    for case, (files, seed, size) in enumerate([(1, None, 1 << 20), (7, 3, 700), (5, 8, 300)]):
        monkeypatch.setattr(exchange, "LIMITS", replace(LIMITS, partition_bytes=size, most_partitions=5, fan_in=3))
        built = build(dataset_of(tmp_path / str(case), DOCUMENTS, files, seed), tokenizer, ("topic",), SMALL)
        contents.append({name: cache.digest for name, cache in built.caches.items()})
        texts.append({name: cache.text_digests().tolist() for name, cache in built.caches.items()})
        ids.append({name: cache.ids(0, len(cache)).tolist() for name, cache in built.caches.items()})
        assert all(cache.verify() == [] for cache in built.caches.values())
        assert built.caches["news"].description.array("tokens").shards > 2
    assert contents[0] == contents[1] == contents[2]
    assert texts[0] == texts[1] == texts[2] and ids[0] == ids[1] == ids[2]  # ids come from a key column here


def test_content_does_not_depend_on_how_arrays_are_cut(tmp_path: Path, tokenizer: Tokenizer) -> None:
    dataset = dataset_of(tmp_path, DOCUMENTS)
    other = replace(SMALL, inner_tokens=32, shard_tokens=128, inner_documents=2)
    digests = []
    for number, layout in enumerate((SMALL, other)):
        target = tmp_path / f"copy{number}"
        _copy(dataset.store.root, target)
        digests.append(build(_in(dataset, target), tokenizer, layout=layout).caches["all"].digest)
    assert digests[0] == digests[1]


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target)


def _in(dataset: Any, root: Path) -> Any:
    return replace(dataset, store=Store(root))


@pytest.mark.usefixtures("small_partitions")
def test_every_byte_is_the_same_in_any_order_of_tasks_and_when_run_again(tmp_path: Path, tokenizer: Tokenizer) -> None:
    dataset = dataset_of(tmp_path, DOCUMENTS, files=4)
    trees = []
    for number, runner in enumerate((None, ShuffledRunner(1), ShuffledRunner(2))):
        _copy(dataset.store.root, tmp_path / f"s{number}")
        build(_in(dataset, tmp_path / f"s{number}"), tokenizer, ("level",), SMALL, runner)
        trees.append(tree(tmp_path / f"s{number}"))
    assert trees[0] == trees[1] == trees[2]
    again = build(_in(dataset, tmp_path / "s0"), tokenizer, ("level",), SMALL)
    assert tree(tmp_path / "s0") == trees[0] and len(again.inner) > 20


def test_statistics_of_a_cache_count_tokens_by_value(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: Any) -> None:
    monkeypatch.setattr(by_value, "ROWS", 7)
    monkeypatch.setattr(by_value, "MOST", 1)
    dataset = dataset_of(tmp_path, DOCUMENTS, files=3)
    built = build(dataset, tokenizer, ("level",))
    rows = [row for batch in dataset.batches(["id", "topic"]) for row in batch.to_pylist()]
    topics = {row["id"]: row["topic"] for row in rows}
    for cache in built.caches.values():
        told = cache.description.statistics["by"]
        assert set(told) == {"source", "topic", "licence"}  # "level" is no column of levels: its name says so
        sums: dict[Any, list[int]] = {}
        for place, identity in enumerate(cache.ids(0, len(cache))):
            counts = sums.setdefault(topics[identity.tobytes()], [0, 0])
            counts[0], counts[1] = counts[0] + 1, counts[1] + len(cache[place])
        (lowest,) = told["topic"]["values"]["least"].values()  # of both, and exact
        assert [lowest["documents"], lowest["tokens"]] == sums[lowest["name"]]
        assert list(told["topic"].get("without", {}).values()) == sums.get(None, [])
        assert list(told["topic"]["all"].values()) == [cache.documents, cache.tokens]


@pytest.mark.slow
@pytest.mark.ray
def test_caches_built_on_ray_have_the_same_bytes(tmp_path: Path, tokenizer: Tokenizer, ray_of_two: RayRunner) -> None:
    dataset = dataset_of(tmp_path, DOCUMENTS, files=4)
    for name, runner in (("here", None), ("ray", ray_of_two)):
        _copy(dataset.store.root, tmp_path / name)
        build(_in(dataset, tmp_path / name), tokenizer, ("topic",), SMALL, runner)
    assert tree(tmp_path / "here") == tree(tmp_path / "ray")


class Killed(BaseException):
    """What a process that is killed does not catch."""


@pytest.mark.usefixtures("small_partitions")
def test_build_killed_at_every_point_in_turn_ends_in_the_same_store(tmp_path: Path, tokenizer: Tokenizer) -> None:
    dataset = dataset_of(tmp_path, DOCUMENTS[:20], files=2)
    _copy(dataset.store.root, tmp_path / "undisturbed")
    build(_in(dataset, tmp_path / "undisturbed"), tokenizer, ("level",), SMALL)
    died: set[str] = set()

    def die(point: str) -> None:
        if point not in died:
            died.add(point)
            raise Killed(point)

    while True:
        before = len(died)
        try:
            build(dataset, tokenizer, ("level",), SMALL, failpoint=die)
            break
        except Killed:
            assert len(died) == before + 1
    assert tree(dataset.store.root) == tree(tmp_path / "undisturbed")
    names = {point.rpartition(":")[0] for point in died}
    # A receipt whose link is made is there for the next attempt, which then does not come to its last point.
    expected = {f"{name}:{point}" for name in names for point in POINTS}
    assert {point.rpartition("/")[2] for point in expected - died} == {"receipt.json:published"}
    ends = {name.rpartition("/")[2] for name in names}
    assert {"cells.json", "tokens.exchange", "lengths.json", "written.json", "cache.json", "zarr.json"} <= ends
    assert not list((dataset.store.root / "spool").iterdir())


def test_statistics_of_a_cache_count_its_documents(tmp_path: Path, tokenizer: Tokenizer) -> None:
    built = build(dataset_of(tmp_path, DOCUMENTS, files=3), tokenizer, ("level",))
    for level in (0, 1):
        mine = [line["text"] for line in DOCUMENTS if line["level"] == level]
        statistics = built.caches[str(level)].description.statistics
        assert statistics["documents"] == len(mine) and statistics["characters"] == sum(map(len, mine))
        assert statistics["bytes"] == sum(len(text.encode()) for text in mine)
        assert statistics["tokens"] == built.caches[str(level)].tokens and statistics["unknown"] == 0
        assert sum(statistics["lengths"].values()) == len(mine)
        cache = built.caches[str(level)]
        assert count_used(statistics) == len(set(cache.read(0, cache.tokens).tolist()))
        lengths = {cache.ids(n, n + 1).tobytes().hex(): len(cache[n]) for n in range(len(cache))}
        expected = sorted(lengths.items(), key=lambda item: (-item[1], item[0]))[:LONGEST]
        assert named_longest(statistics) == expected
        assert statistics["special_text"] == {
            END: {"documents": sum(END in text for text in mine), "hits": sum(text.count(END) for text in mine)},
            BEGIN: {"documents": sum(BEGIN in text for text in mine), "hits": sum(text.count(BEGIN) for text in mine)},
        }


def test_origin_leads_to_the_row_of_the_dataset(tmp_path: Path, tokenizer: Tokenizer) -> None:
    dataset = dataset_of(tmp_path, [*DOCUMENTS, {"key": "x", "text": 5}], files=5)
    cache = build(dataset, tokenizer).caches["all"]
    by_place = {}
    for ordinal, shard in enumerate(dataset.shards()):
        part = dataset.store.path(f"shards/{shard['key'][:16]}/part.parquet")
        for row, values in enumerate(pq.read_table(part, columns=["id", "text"]).to_pylist()):
            by_place[ordinal, row] = values
    for document, (shard, row) in enumerate(cache.origin(0, len(cache)).tolist()):
        values = by_place[shard, row]
        assert cache.ids(document, document + 1).tobytes() == values["id"]
        assert cache.text_digests()[document].tobytes() == text_digest(values["text"])
        assert cache[document].tolist() == tokenizer.encoder().encode(values["text"]).tolist()


def test_unit_without_documents_keeps_the_ordinals_of_the_others(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_lines(tmp_path / "raw" / "a.jsonl", [b"\n"])
    write_lines(tmp_path / "raw" / "b.jsonl", DOCUMENTS[:3])
    dataset = run_on(Outputs(texts=described(tmp_path / "raw")), tmp_path / "store").outputs["texts"]
    cache = build(dataset, tokenizer).caches["all"]
    assert sorted(cache.origin(0, 3).tolist()) == [[1, 0], [1, 1], [1, 2]]


def test_dataset_without_documents_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    dataset = dataset_of(tmp_path, [])
    with pytest.raises(CacheError, match="keeps no documents"):
        build(dataset, tokenizer)
    assert not (dataset.store.root / "caches").exists()


def test_texts_without_tokens_make_a_cache_of_empty_documents(tmp_path: Path, tokenizer: Tokenizer) -> None:
    documents = [{"key": str(n), "text": ""} for n in range(3)]
    cache = build(dataset_of(tmp_path, documents), Tokenizer(tokenizer.path)).caches["all"]
    assert (cache.tokens, cache.documents, cache[2].tolist(), cache.read(0, 0).tolist()) == (0, 3, [], [])
    assert cache.borders(0, 0).tolist() == [] and cache.verify() == []


@pytest.mark.parametrize("count", [7, 8, 9, 16])
def test_documents_at_the_edge_of_a_shard_are_all_there(tmp_path: Path, tokenizer: Tokenizer, count: int) -> None:
    documents = DOCUMENTS[:count]
    cache = build(dataset_of(tmp_path, documents), tokenizer, layout=SMALL).caches["all"]
    assert documents_of(cache) == by_definition(documents, tokenizer) and cache.verify() == []
    assert cache.description.array("offsets").shards == count // 8 + 1


def test_document_longer_than_several_shards_is_whole(tmp_path: Path, tokenizer: Tokenizer) -> None:
    documents = [*DOCUMENTS[:5], {"key": "long", "text": "night of the lamp " * 400}]
    cache = build(dataset_of(tmp_path, documents), tokenizer, layout=SMALL).caches["all"]
    assert documents_of(cache) == by_definition(documents, tokenizer) and cache.verify() == []
    assert max(len(cache[i]) for i in range(6)) > 4 * SMALL.shard_tokens


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (("site",), "no column 'site'"),
        (("level", "level"), "twice"),
        (("origin",), "'origin' is struct"),
    ],
)
def test_columns_that_make_no_cells_are_refused_before_any_work(
    tmp_path: Path, tokenizer: Tokenizer, by: tuple[str, ...], message: str
) -> None:
    dataset = dataset_of(tmp_path, DOCUMENTS[:2])
    before = tree(dataset.store.root)
    with pytest.raises(ConfigurationError, match=message):
        build(dataset, tokenizer, by)
    assert tree(dataset.store.root) == before


def test_too_many_cells_are_refused(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "MOST_CELLS", 3)
    dataset = dataset_of(tmp_path, DOCUMENTS, files=2)
    with pytest.raises(Exception, match="more than 3 combinations of values"):
        build(dataset, tokenizer, ("topic", "level"))
    assert MOST_CELLS > 1000


def test_cells_of_one_name_are_refused_and_nulls_sort_last() -> None:
    counts = {(None,): (1, 10), ("b",): (1, 10), ("a",): (2, 1 << 30)}
    cells = make_cells(("topic",), counts, LIMITS)
    assert [(cell.name, cell.first, cell.partitions) for cell in cells] == [("a", 0, 16), ("b", 16, 1), ("null", 17, 1)]
    with pytest.raises(CacheError, match="both have the name 'null'"):
        make_cells(("topic",), {(None,): (1, 1), ("null",): (1, 1)}, LIMITS)
    with pytest.raises(CacheError, match="both have the name"):
        make_cells(("a", "b"), {("1/b=2", "3"): (1, 1), ("1", "2/b=3"): (1, 1)}, LIMITS)


def test_names_of_cells_and_folders_are_safe() -> None:
    assert cell_name((), ()) == "all"
    assert cell_name(("source",), ("web",)) == "web"
    assert cell_name(("topic", "level"), ("3", None)) == "topic=3/level=null"
    assert cache_folder("../ä/x=1", "ab" * 32) == "caches/..---x=1-abababababababab"
    assert len(cache_folder("x" * 500, "ab" * 32)) < 120


def test_tokenizer_is_kept_in_the_store_once(tmp_path: Path, tokenizer: Tokenizer) -> None:
    dataset = dataset_of(tmp_path, DOCUMENTS[:4])
    built: Built = build(dataset, tokenizer)
    build(dataset, tokenizer, ("level",))
    path = stored_tokenizer(built.store, tokenizer.digest)
    assert digest_file(path) == tokenizer.digest == built.caches["all"].tokenizer
    assert len(list(built.store.root.rglob("tokenizer.json"))) == 1
    assert str(tmp_path) not in json.dumps([receipt.to_json() for receipt in (*built.receipts, *built.inner)])


def test_worker_whose_library_encodes_otherwise_is_refused(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = dataset_of(tmp_path, DOCUMENTS[:2])
    plan = Plan(dataset.store, "k", (), (), tokenizer, tokenizer.encoder().dtype, (1, 2, 3), LAYOUT, LIMITS)
    with pytest.raises(OtherTokenizerError, match="other ids on this worker"):
        TokensJob(plan).run(Item("k", "tokens 0", 0))


def test_wide_vocabulary_is_stored_in_four_bytes(tmp_path: Path) -> None:
    content = json.loads(train_bpe(["lamp"], 300, [END]))
    content["added_tokens"].append({**content["added_tokens"][0], "id": 300, "content": "<|x|>"})
    content["model"]["vocab"]["unlikely piece"] = 70_000
    (tmp_path / "wide.json").write_text(json.dumps(content))
    tokenizer = Tokenizer(tmp_path / "wide.json", eos=END)
    cache = build(dataset_of(tmp_path, DOCUMENTS), tokenizer, layout=SMALL).caches["all"]
    assert cache.read(0, 2).dtype == np.uint32 and cache.vocabulary == 70_001
    assert documents_of(cache) == by_definition(DOCUMENTS, tokenizer) and cache.verify() == []
