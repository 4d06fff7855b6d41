"""From the HTTP header in an archive to the answers that the report counts: opt-outs and URL lists through a run."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from curate import Outputs, read_warc
from curate.run import run
from tests.curate.test_warc import record
from transforms import ExtractText, RespectOptOut, URLDenyList, URLList

ARTICLE = (
    "<p>The boats lay in the harbour, and the masts of the boats were grey in the morning light of the town.</p>" * 4
)


def page(head: str = "") -> bytes:
    return f"<html><head>{head}</head><body><article>{ARTICLE}</article></body></html>".encode()


def response(body: bytes, *fields: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", "Content-Type: text/html", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_opt_outs_and_denied_urls_go_before_any_text_is_written(tmp_path: Path) -> None:
    (tmp_path / "crawl").mkdir()
    blocks = [
        response(page()),
        response(page(), "X-Robots-Tag: noai"),
        response(page('<meta name="tdm-reservation" content="1">')),
        response(page('<meta name="robots" content="noindex">')),
        response(page()),
    ]
    data = b"".join(record(number, block) for number, block in enumerate(blocks))
    data += record(5, page(), "resource", "text/html")
    (tmp_path / "crawl" / "a.warc").write_bytes(data)
    (tmp_path / "bad.txt").write_text("example.org/4\n")
    pages = read_warc(tmp_path / "crawl", "*.warc", source="web").apply(
        URLDenyList(URLList(tmp_path / "bad.txt")), ExtractText("resiliparse"), RespectOptOut(), name="pages"
    )
    result = run(Outputs(pages=pages), tmp_path / "store", runner="local")
    (dataset,) = [stage for stage in result.stages if stage.name == "pages"]
    folder = next((tmp_path / "store").glob("pages-*"))
    statistics = json.loads((folder / "statistics.json").read_text())
    assert statistics["optout"]["web"] == {
        "robots_meta": {"no": 2, "not checked": 1},
        "robots_txt": {"not checked": 3},
        "tdm": {"no": 2, "not checked": 1},
    }
    assert dataset.rows == 3
    parts = [pq.read_table(path).to_pylist() for path in (tmp_path / "store" / "shards").rglob("part.parquet")]
    rows = [row for part in parts for row in part]
    assert [row["optout_signals"] for row in rows] == ["[]", '["meta robots: noindex"]', "[]"]
    ledger = [row for path in (tmp_path / "store").rglob("dropped.parquet") for row in pq.read_table(path).to_pylist()]
    assert {(row["transform"], row["reason"]) for row in ledger} == {
        ("URLDenyList", "url list: bad"),
        ("RespectOptOut", "opt-out: robots_meta"),
        ("RespectOptOut", "opt-out: tdm"),
    }
    samples = [row for path in (tmp_path / "store").rglob("samples.parquet") for row in pq.read_table(path).to_pylist()]
    assert {bool(row["excerpt"]) for row in samples if row["transform"] == "RespectOptOut"} == {False}
