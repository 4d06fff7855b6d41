import json
import sys
import types

import pytest

from curate.configuration import ConfigurationError
from trainers.sinks import SINKS, feed

LINES = [
    {"kind": "start", "step": 0, "flop_per_token": 10, "timing": {"time": 5.0, "peak_flops": 1280.0}},
    {"kind": "validation", "step": 0, "source": "books", "loss": 4.0, "bits_per_byte": 2.0, "timing": {"seconds": 1.0}},
    {"kind": "train", "step": 0, "loss": 3.5, "timing": {"time": 6.0, "seconds": 1.0, "tokens_per_second": 64.0}},
    {"kind": "train", "step": 1, "loss": None, "timing": {"time": 7.0, "seconds": 1.0, "tokens_per_second": 64.0}},
    {"kind": "stop", "step": 2, "timing": {"time": 8.0, "reason": "finished"}},
]
FIRST = {"train/loss": 3.5, "train/seconds": 1.0, "train/tokens_per_second": 64.0, "train/mfu": 0.5}


@pytest.fixture
def run(tmp_path):
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES) + '{"kind": "tr')
    return tmp_path


class Recorder:
    def __init__(self):
        self.told, self.closed = [], False

    def write(self, step, values, at):
        self.told.append((step, values, at))

    def close(self):
        self.closed = True


def test_sink_is_fed_every_number_of_the_log_and_stops_where_the_run_did(run):
    sink = Recorder()
    assert feed(run, sink, follow=lambda: True) == 3
    assert sink.closed
    assert sink.told[0] == (0, {"validation/books/loss": 4.0, "validation/books/bits_per_byte": 2.0}, 0.0)
    assert sink.told[1] == (0, FIRST, 6.0)
    assert "train/loss" not in sink.told[2][1]


def test_line_that_was_half_written_is_told_when_it_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("trainers.sinks.POLL_SECONDS", 0)
    path, content = tmp_path / "log.jsonl", (json.dumps(LINES[2]) + "\n").encode()
    path.write_bytes(content[:9])
    pieces = [content[9:], b""]

    def follow():
        with path.open("ab") as file:
            file.write(pieces.pop(0))
        return bool(pieces)

    sink = Recorder()
    assert feed(tmp_path, sink, follow=follow) == 1


def test_tensorboard_files_hold_the_numbers_and_are_written_anew(run):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto import event_pb2

    for _ in range(2):
        feed(run, SINKS["tensorboard"](run))
    (file,) = (run / "tensorboard").iterdir()
    found, content = {}, file.read_bytes()
    while content:  # a record: length as 8 bytes, their check as 4, the event, its check as 4
        size = int.from_bytes(content[:8], "little")
        event = event_pb2.Event.FromString(content[12 : 12 + size])
        found |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
        content = content[16 + size :]
    assert found["train/loss", 0] == 3.5
    assert found["validation/books/bits_per_byte", 0] == 2.0
    assert found["train/mfu", 1] == 0.5


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_tracker_gets_the_numbers_with_their_step_offline(run, monkeypatch, name):
    told, asked = [], {}
    one = types.SimpleNamespace(log=told.append, finish=lambda: told.append("end"))

    def init(**given):
        asked.update(given)
        return one

    monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(init=init))
    feed(run, SINKS[name](run))
    assert asked.get("mode", "offline") == "offline"
    assert asked["name"] == run.name
    assert told[1] == {**FIRST, "step": 0, "time": 6.0}
    assert told[-1] == "end"


def test_sink_whose_library_is_not_there_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigurationError, match="pip install wandb"):
        SINKS["wandb"](run)


def test_line_that_is_damaged_is_named(tmp_path):
    (tmp_path / "log.jsonl").write_text(json.dumps(LINES[2]) + '\n{"kind": "tr\n')
    with pytest.raises(ConfigurationError, match=r"log\.jsonl, line 2, is damaged"):
        feed(tmp_path, Recorder(), follow=lambda: False)
