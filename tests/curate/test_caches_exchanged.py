"""Caches in the formats of other tools and from them, and generations: the same documents in the same order."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curate.caches import (
    FORMATS,
    CacheError,
    OtherTokenizerError,
    TokenCache,
    export_cache,
    exporting,
    extend_cache,
    import_cache,
)
from curate.caches.drawing import draw_borders
from curate.configuration import ConfigurationError
from curate.store import Store
from tests.curate.test_caches_untrained import made
from tests.curate.token_corpus import END, SMALL, build, dataset_of, lines, write_tokenizer
from transforms.tokens import Tokenizer

PEERS = Path(__file__).parents[2] / ".venv-peer-tokens" / "bin" / "python"
DOCUMENTS = lines(40)

tensorstore = pytest.importorskip("tensorstore")


@pytest.fixture(scope="module")
def tokenizer(memory: Path) -> Tokenizer:
    return Tokenizer(write_tokenizer(memory), eos=END)


@pytest.fixture(scope="module")
def cache(memory: Path, tokenizer: Tokenizer) -> TokenCache:
    return build(dataset_of(memory / "exchanged", DOCUMENTS), tokenizer, layout=SMALL).caches["all"]


@pytest.fixture(scope="module")
def plain(cache: TokenCache) -> list[list[int]]:
    return [document.tolist() for document in cache]


def read_megatron(folder: Path) -> list[list[int]]:
    index = (folder / "all.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00" and struct.unpack("<QB", index[9:18]) == (1, 8)
    count, borders = struct.unpack("<QQ", index[18:34])
    lengths = np.frombuffer(index, "<i4", count, 34)
    places = np.frombuffer(index, "<i8", count, 34 + 4 * count)
    assert np.frombuffer(index, "<i8", offset=34 + 12 * count).tolist() == list(range(borders)) and borders == count + 1
    data = (folder / "all.bin").read_bytes()
    return [np.frombuffer(data, "<u2", n, at).tolist() for n, at in zip(lengths, places, strict=True)]


def read_datatrove(folder: Path) -> list[list[int]]:
    ends = np.fromfile(folder / "all.ds.index", "<u8").astype(np.int64)
    tokens = np.fromfile(folder / "all.ds", "<u2")
    assert (folder / "all.ds.metadata").read_text().splitlines()[1] == str(len(tokens))
    return [part.tolist() for part in np.split(tokens, ends[:-1])]


def packed(content: bytes) -> list[bytes]:
    count = struct.unpack("<I", content[:4])[0]
    places = np.frombuffer(content, "<u4", count + 1, 4).tolist()
    assert places[-1] == len(content)
    return [content[a:b] for a, b in pairwise(places)]


def read_mds(folder: Path) -> list[list[int]]:
    found = []
    for shard in json.loads((folder / "index.json").read_text())["shards"]:
        samples = packed((folder / shard["raw_data"]["basename"]).read_bytes())
        assert len(samples) == shard["samples"] and shard["column_encodings"] == ["ndarray:uint16"]
        for sample in samples:
            assert struct.unpack("<I", sample[:4])[0] == len(sample) - 4 and sample[4] >> 2 == 1
            width = 1 << (sample[4] & 3)
            values = np.frombuffer(sample, "<u2", offset=5 + width)
            assert int.from_bytes(sample[5 : 5 + width], "little") == len(values)
            found.append(values.tolist())
    return found


def read_litdata(folder: Path) -> list[list[int]]:
    index = json.loads((folder / "index.json").read_text())
    assert index["config"]["data_format"] == ["no_header_tensor:20"]
    found = []
    for chunk in index["chunks"]:
        items = [np.frombuffer(item, "<u2").tolist() for item in packed((folder / chunk["filename"]).read_bytes())]
        assert chunk["chunk_size"] == len(items) and chunk["dim"] == sum(map(len, items))
        found += items
    return found


def read_npy(folder: Path) -> list[list[int]]:
    tokens, offsets = np.load(folder / "tokens.npy", mmap_mode="r"), np.load(folder / "offsets.npy")
    return [part.tolist() for part in np.split(tokens, offsets[1:-1])]


READERS: dict[str, Callable[[Path], list[list[int]]]] = {
    "megatron": read_megatron,
    "datatrove": read_datatrove,
    "mds": read_mds,
    "litdata": read_litdata,
    "npy": read_npy,
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("size", [exporting.SHARD_BYTES, 300])
def test_export_holds_every_document_in_order(
    cache: TokenCache, plain: list[list[int]], tmp_path: Path, form: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "SHARD_BYTES", size)
    monkeypatch.setattr(exporting, "BLOCK", 100)
    files = export_cache(cache, tmp_path, form)
    assert READERS[form](tmp_path) == plain
    assert (len(files) > 3) == (form in ("mds", "litdata") and size == 300)
    with pytest.raises(ConfigurationError, match="is not empty: an export needs a folder of its own"):
        export_cache(cache, tmp_path, form)


OWN_READERS = {
    "megatron": """
from megatron.core.datasets.indexed_dataset import IndexedDataset
data = IndexedDataset(folder + "/all")
found = [data[i].tolist() for i in range(len(data))]
""",
    "datatrove": """
from datatrove.utils.dataset import DatatroveFileDataset
data = DatatroveFileDataset(folder + "/all.ds", 9, 2)
found = [token for i in range(len(data)) for token in data[i]["input_ids"].tolist()]
""",
    "mds": """
from streaming.base.format import reader_from_json
import json
shards = [reader_from_json(folder, None, shard) for shard in json.load(open(folder + "/index.json"))["shards"]]
found = [shard[i]["tokens"].tolist() for shard in shards for i in range(len(shard))]
""",
    "litdata": """
from litdata import StreamingDataset
from litdata.streaming.item_loader import TokensLoader
data = StreamingDataset(folder, item_loader=TokensLoader(block_size=10))
found = [token for i in range(len(data)) for token in data[i].tolist()]
""",
}


@pytest.mark.parametrize("form", OWN_READERS)
def test_export_is_read_by_the_projects_own_reader(
    cache: TokenCache, plain: list[list[int]], tmp_path: Path, form: str
) -> None:
    if not PEERS.exists():
        pytest.skip(
            f"no {PEERS.parent.parent.name}: pip install torch litdata mosaicml-streaming megatron-core datatrove"
        )
    export_cache(cache, tmp_path, form)
    code = f"import json, sys\nfolder = sys.argv[1]\n{OWN_READERS[form]}\nprint('FOUND' + json.dumps(found))"
    run = subprocess.run([PEERS, "-W", "ignore", "-c", code, tmp_path], capture_output=True, text=True)
    if "ModuleNotFoundError" in run.stderr:
        pytest.skip(run.stderr.strip().splitlines()[-1])
    assert "FOUND" in run.stdout, run.stderr[-2000:]
    found = json.loads(run.stdout.rpartition("FOUND")[2])
    tokens = [token for document in plain for token in document]
    assert found == (tokens[: len(tokens) // 10 * 10] if form in ("datatrove", "litdata") else plain)


def test_export_of_a_wide_vocabulary_is_signed_where_readers_know_no_other(cache: TokenCache, tmp_path: Path) -> None:
    wide = Wide(cache)
    export_cache(wide, tmp_path / "megatron", "megatron")
    assert (tmp_path / "megatron" / "all.idx").read_bytes()[17] == 4
    assert np.fromfile(tmp_path / "megatron" / "all.bin", "<i4").tolist() == cache.read(0, cache.tokens).tolist()
    export_cache(wide, tmp_path / "datatrove", "datatrove")
    assert np.fromfile(tmp_path / "datatrove" / "all.ds", "<u4").tolist() == cache.read(0, cache.tokens).tolist()


class Wide(TokenCache):
    """A cache that says its tokens have four bytes."""

    def __init__(self, cache: TokenCache) -> None:
        from dataclasses import replace

        super().__init__(cache.store, cache.description)
        self._inner, self.description = cache, replace(cache.description, dtype="uint32")

    def read(self, start: int, stop: int) -> Any:
        return self._inner.read(start, stop).astype(np.uint32)


def write_levanter(folder: Path, documents: list[list[int]], driver: str) -> Path:
    """Write a Levanter cache: offsets[0] is the number of documents, then where each ends; arrays may be longer."""
    ends = np.cumsum([len(document) for document in documents])
    arrays = {
        "data": np.array([token for document in documents for token in document] + [0] * 5, np.int32),
        "offsets": np.array([len(documents), *ends, 0, 0], np.int64),
    }
    for name, values in arrays.items():
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{folder}/train/input_ids/{name}/"}}
        options = {"create": True, "dtype": values.dtype.name, "shape": list(values.shape)}
        tensorstore.open(spec, **options).result().write(values).result()
    ledger = {"total_num_rows": len(documents), "is_finished": True, "shard_rows": {"a": len(documents)}}
    (folder / "train" / "shard_ledger.json").write_text(json.dumps(ledger))
    return folder


@pytest.mark.parametrize("kind", ["datatrove", "zarr", "zarr3"])
def test_imported_cache_holds_the_documents_in_the_order_of_the_format(
    cache: TokenCache, plain: list[list[int]], tokenizer: Tokenizer, tmp_path: Path, kind: str
) -> None:
    if kind == "datatrove":
        export_cache(cache, tmp_path / "source", "datatrove")
        source = tmp_path / "source" / "all.ds"
    else:
        source = write_levanter(tmp_path / "source", plain[::-1], kind)
    found = import_cache(source, tmp_path / "made", tokenizer, "all")
    assert [document.tolist() for document in found] == plain and found.digest != ""
    assert found.text_digests().tolist() == cache.text_digests().tolist()
    assert found.verify() == [] and TokenCache.open(tmp_path / "made", tokenizer).digest == found.digest
    order = found.origin(0, len(found))[:, 1].tolist()
    assert sorted(order) == list(range(len(plain))) and len({row.tobytes() for row in found.ids(0, len(found))}) == 40
    with pytest.raises(CacheError, match="holds a cache"):
        import_cache(source, tmp_path / "made", tokenizer, "all")


def test_import_of_what_is_not_whole_is_refused(
    cache: TokenCache, plain: list[list[int]], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"is no \.ds file and no folder with a shard_ledger\.json"):
        import_cache(tmp_path, tmp_path / "made", tokenizer, "all")
    export_cache(cache, tmp_path / "ds", "datatrove")
    path = tmp_path / "ds" / "all.ds"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CacheError, match="it is cut short"):
        import_cache(path, tmp_path / "made", tokenizer, "all")
    (tmp_path / "ds" / "all.ds.index").unlink()
    with pytest.raises(CacheError, match=r"all\.ds\.index is missing"):
        import_cache(path, tmp_path / "made", tokenizer, "all")
    ledger = write_levanter(tmp_path / "levanter", plain, "zarr3") / "train" / "shard_ledger.json"
    ledger.write_text(ledger.read_text().replace("true", "false"))
    with pytest.raises(CacheError, match="is not finished"):
        import_cache(tmp_path / "levanter", tmp_path / "made", tokenizer, "all")
    assert not (tmp_path / "made").exists()


def test_import_by_another_tokenizer_is_refused(cache: TokenCache, tokenizer: Tokenizer, tmp_path: Path) -> None:
    export_cache(cache, tmp_path / "ds", "datatrove")
    source = tmp_path / "ds" / "all.ds"
    with pytest.raises(OtherTokenizerError, match=r"does not begin with BOS .*another tokenizer, or other ends"):
        import_cache(source, tmp_path / "a", Tokenizer(tokenizer.path, bos=END), "all")
    encoder = tokenizer.encoder()
    spelled = [[int(encoder.encode(letter)[0]) for letter in line["text"][:9]] for line in DOCUMENTS if line["text"]]
    letters = write_levanter(tmp_path / "letters", [[*ids, encoder.eos or 0] for ids in spelled], "zarr")
    with pytest.raises(OtherTokenizerError, match=r"1\d of 16 compared documents encode to other tokens"):
        import_cache(letters, tmp_path / "b", tokenizer, "all")
    letters = write_levanter(tmp_path / "wide", [[70_000, encoder.eos or 0]], "zarr")
    with pytest.raises(OtherTokenizerError, match=r"ids up to 70000, the vocabulary has 361"):
        import_cache(letters, tmp_path / "c", tokenizer, "all")


def test_generation_has_the_content_of_a_cache_of_all_documents(
    cache: TokenCache, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    old = build(dataset_of(tmp_path / "old", DOCUMENTS[:15]), tokenizer, layout=SMALL).caches["all"]
    news = [
        build(dataset_of(tmp_path / f"new{n}", DOCUMENTS[15 + n : 40 : 2]), tokenizer, layout=SMALL).caches["all"]
        for n in (0, 1)
    ]
    made = extend_cache(tmp_path / "second", old, news[:1], SMALL)
    third = extend_cache(tmp_path / "third", made, news[1:], SMALL)
    assert third.digest == cache.digest and third.verify() == [] == made.verify()
    assert [d.tolist() for d in third] == [d.tolist() for d in cache]
    assert third.text_digests().tolist() == cache.text_digests().tolist()
    assert dict(third.description.statistics) == cache.description.statistics
    assert [g["documents"] for g in third.description.generations] == [15, 13, 12]
    assert [g["dataset"] for g in third.description.generations] == [dict(c.description.dataset) for c in (old, *news)]
    datasets = {c.description.dataset["key"]: c for c in (old, *news)}
    for document in range(len(third)):
        dataset, shard, row = third.lies_in(document)
        came = datasets[dataset["key"]]
        same = [
            n for n in range(len(came)) if came.ids(n, n + 1).tobytes() == third.ids(document, document + 1).tobytes()
        ]
        assert [came.origin(n, n + 1)[0].tolist() for n in same] == [[shard, row]]
    assert cache.lies_in(0)[0] == cache.description.dataset


def test_generation_keeps_what_is_read_and_not_trained(tokenizer: Tokenizer, tmp_path: Path) -> None:
    masked = made(tmp_path / "masked", tokenizer, SMALL)
    plain = build(dataset_of(tmp_path / "plain", lines(4)), tokenizer, layout=SMALL).caches["all"]
    both = extend_cache(tmp_path / "both", plain, [masked], SMALL)
    assert both.verify() == []
    marks, expected = both.read_untrained([(0, both.tokens)]), masked.read_untrained([(0, masked.tokens)])
    assert marks is not None and expected is not None and int(marks[0].sum()) == int(expected[0].sum()) > 0
    names = [np.hstack([c.ids(0, len(c)), c.text_digests()]).tolist() for c in (both, masked)]
    for document, name in enumerate(names[1]):
        at, start, stop = names[0].index(name), *masked.starts[document : document + 2].tolist()
        assert marks[0][both.starts[at] : both.starts[at + 1]].tolist() == expected[0][start:stop].tolist()


def test_generation_of_what_does_not_belong_together_is_refused(
    cache: TokenCache, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    with pytest.raises(CacheError, match="is there twice"):
        extend_cache(tmp_path / "twice", cache, [cache])
    with pytest.raises(CacheError, match="nothing to extend with"):
        extend_cache(tmp_path / "none", cache, [])
    other = build(dataset_of(tmp_path / "other", DOCUMENTS[:5]), Tokenizer(tokenizer.path)).caches["all"]
    with pytest.raises(OtherTokenizerError, match="differ in eos_text"):
        extend_cache(tmp_path / "mixed", cache, [other])


def test_written_cache_leaves_nothing_else_in_its_folder(cache: TokenCache, tmp_path: Path) -> None:
    old = Path(shutil.copytree(cache.store.root, tmp_path / "old"))
    new = build(dataset_of(tmp_path / "new", lines(43)[40:]), Tokenizer(write_tokenizer(tmp_path), eos=END))
    made = extend_cache(Store(tmp_path / "made"), TokenCache.open(old), [new.caches["all"]])
    assert made.verify() == []
    assert set(made.store.names()) == {*made.description.files, "cache.json"}


def test_borders_are_drawn_after_each_token(tokenizer: Tokenizer) -> None:
    encoder = Tokenizer(tokenizer.path, bos="<|begin|>", eos=END).encoder()
    text = "Die Lampe\nbrannte 灯 zu\u0301 Ende\x07"
    spans = encoder.encode_with_offsets(text)
    drawn = list(
        draw_borders(text, spans, lambda index: encoder.decode([index]), lambda part: part.replace("\x07", "¤"))
    )
    assert (
        len(drawn) == 2
        and drawn[0].endswith("⏎")
        and drawn[0].startswith("<|begin|>│")
        and drawn[1].endswith(f"{END}│")
    )
    assert "".join(drawn).count("│") == len(spans.ids)
    plain = "".join(drawn).removeprefix("<|begin|>").removesuffix(f"{END}│")
    assert plain.replace("│", "").replace("·", "").replace("⏎", "\n").replace("¤", "\x07") == text
    assert "灯│·│·│" in drawn[1] or "灯│" in drawn[1]
