import json
from contextlib import closing

import pytest

from curate.configuration import ConfigurationError
from trainers.log import Writer, read_log, untimed


def write(folder, *lines):
    with closing(Writer(folder)) as log:
        for kind, step, values in lines:
            log.write(kind, step, values, {"seconds": 1})
        log.sync()


def test_log_of_a_run_that_was_killed_and_resumed_has_each_step_once(tmp_path):
    write(tmp_path, ("start", 0, {}), ("train", 0, {"loss": 3.0}), ("train", 1, {"loss": 2.0}))
    write(tmp_path, ("start", 1, {}), ("train", 1, {"loss": 2.0}), ("train", 2, {"loss": 1.5}))
    log = read_log(tmp_path)
    assert [line["step"] for line in log.train] == [0, 1, 2]
    assert (len(log.starts), log.repeated, log.disagreed) == (2, 1, ())
    assert untimed(log.train[2]) == {"kind": "train", "step": 2, "loss": 1.5}


def test_log_whose_repeated_step_gave_another_loss_says_so(tmp_path):
    write(tmp_path, ("train", 0, {"loss": 3.0}), ("train", 1, {"loss": 2.0}), ("train", 1, {"loss": 2.1}))
    log = read_log(tmp_path)
    assert log.disagreed == (1,)
    assert log.train[1]["loss"] == 2.1


def test_part_of_a_line_is_not_read_and_cut_off_by_the_next_writer(tmp_path):
    write(tmp_path, ("train", 0, {"loss": 3.0}))
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"kind":"train","st')
    assert len(read_log(tmp_path).train) == 1
    write(tmp_path, ("train", 1, {"loss": 2.0}))
    assert [json.loads(line)["step"] for line in (tmp_path / "log.jsonl").read_text().splitlines()] == [0, 1]


def test_validation_lines_are_once_per_step_and_source(tmp_path):
    write(tmp_path, *[("validation", 5, {"source": source, "loss": 1.0}) for source in ("b", "a", "b")])
    assert [line["source"] for line in read_log(tmp_path).validation] == ["a", "b"]


def test_value_that_json_has_no_form_for_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path, ("train", 0, {"loss": float("nan")}))


def test_whole_line_that_is_damaged_is_an_error(tmp_path):
    for damaged in ('{"kind"', "[1]", "{}"):
        (tmp_path / "log.jsonl").write_text('{"kind": "stop"}\n' + damaged + "\n")
        with pytest.raises(ConfigurationError, match=r"log\.jsonl, line 2, is damaged: .* remove the line"):
            read_log(tmp_path)
