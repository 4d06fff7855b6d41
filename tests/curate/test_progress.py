"""What long work says of itself on a terminal and in a log."""

from __future__ import annotations

import io
import threading

import pytest

from curate.running.progress import Progress, clock, say, waiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_line_tells_rates_and_the_time_left_by_bytes() -> None:
    progress = Progress("read", 4, 1_000_000, stream=io.StringIO())
    progress.advance(300, 250_000)
    assert progress.line(2.0) == "read: 1/4 shards, 150 documents/s, 0.1 MB/s, 6.0 s left"


def test_line_tells_the_time_left_by_tasks_where_no_bytes_are_counted() -> None:
    progress = Progress("merge", 5, 0, done=1, stream=io.StringIO(), words=("groups", "rows"))
    progress.advance(40, 0)
    assert progress.line(1.0) == "merge: 2/5 groups, 1 reused, 40 rows/s, 3.0 s left"


def test_line_tells_no_rate_of_what_is_not_counted() -> None:
    progress = Progress("write tokens", 2, 0, stream=io.StringIO())
    assert progress.line(0.5) == "write tokens: 0/2 shards, 0.5 s"
    progress.advance(0, 0)
    progress.advance(0, 0)
    assert progress.line(0.5) == "write tokens: 2/2 shards, 0.5 s"


def test_line_counts_what_is_done_where_nobody_knows_how_much_there_is() -> None:
    progress = Progress("contamination", None, 0, stream=io.StringIO())
    progress.advance(3_000, 0)
    assert progress.line(2.0) == "contamination: 3,000 documents, 1,500 documents/s, 2.0 s"


def test_terminal_has_one_line_that_is_written_again_and_a_log_has_plain_lines() -> None:
    terminal, log = Terminal(), io.StringIO()
    for stream in (terminal, log):
        progress = Progress("read", 1, 0, stream=stream)
        say("a word in between", stream)
        progress.advance(10, 0)
        progress.finish()
    assert terminal.getvalue().count("\n") == 2 and terminal.getvalue().count("\r\x1b[2K") == 2
    assert log.getvalue().splitlines()[0] == "a word in between"
    assert log.getvalue().splitlines()[1].startswith("read: 1/1 shards, ") and "\x1b" not in log.getvalue()


@pytest.mark.parametrize(("seconds", "shown"), [(4.21, "4.2 s"), (187, "3:07"), (7_500, "2:05:00")])
def test_durations_are_told_as_people_read_them(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def test_waiting_is_told_only_where_it_is_long() -> None:
    log, told = io.StringIO(), threading.Event()
    with waiting("lists are read", 600, log):
        pass
    assert log.getvalue() == ""
    log.flush = told.set  # type: ignore[method-assign]
    with waiting("lists are read", 0.01, log):
        assert told.wait(60)
    assert log.getvalue() == "lists are read\n"
