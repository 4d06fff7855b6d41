"""The journal of a run on an object store, and its status from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curate.command_line import main
from curate.running.journal import Journal, events_of, runs_in
from tests.storage.servers import credentials, moto, store_at


def test_status_of_a_run_on_an_object_store_is_read_while_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with credentials(), moto() as endpoint:
        store = store_at(endpoint, tmp_path)
        command = ["status", str(store.location), "--endpoint", endpoint, "--region", "us-east-1", "--json"]
        journal = Journal(store)
        journal.job("read", 4, 3, 300)
        kept = journal.keep("lost-1.txt", "last words")
        journal.close()
        assert kept.startswith("s3://")
        assert [event["event"] for event in events_of(store, runs_in(store)[-1])] == ["started", "job"]
        assert main(command) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["state"], told["jobs"][0]["total"], told["jobs"][0]["reused"]) == ("running", 4, 1)
