"""CPU time of children is counted while they run; pages of the scaling benchmark differ in their words' order alone."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.end_to_end_scaling import Cost, another, checks_of
from benchmarks.processor_time import PROC, cpu_seconds

WORDS = re.compile(rb"[A-Za-z]+")


@pytest.mark.skipif(not Path(PROC / "self" / "task").exists(), reason="no /proc: children count when they have ended")
def test_cpu_seconds_count_a_child_that_still_runs_and_not_twice_when_it_has_ended() -> None:
    before = cpu_seconds()
    burn = "import sys, time\nwhile time.process_time() < .3: pass\nprint(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()
        running = cpu_seconds()
        child.stdin.close()
    ended = cpu_seconds()
    assert running - before >= 0.25 and ended - running < 0.25


def test_another_page_has_the_same_words_between_the_same_tags_in_another_order() -> None:
    text = b" ".join(b"word%c%c" % (97 + n // 26, 97 + n % 26) for n in range(90))
    page = b"<html><body class='left to stand as it is, however long'><p>" + text + b"</p></body></html>"
    made = {number: another(page, number) for number in (1, 2)}
    for one in made.values():
        assert Counter(WORDS.findall(one)) == Counter(WORDS.findall(page)) and len(one) == len(page)
        assert re.findall(rb"<[^>]*>", one) == re.findall(rb"<[^>]*>", page)
    assert made[1] != made[2] != page and made[1] == another(page, 1)


def test_scaling_fails_when_a_page_costs_more_among_many() -> None:
    def costs(last: float) -> list[Cost]:
        return [Cost(1, 100, 1, 1.0, 300, 400), Cost(4, 400, 4, 4.0, 300, 400), Cost(16, 1600, 16, last, 320, 400)]

    assert all(holds for _, _, holds in checks_of(costs(17.0), "full").values())
    assert [holds for _, _, holds in checks_of(costs(18.0), "full").values()] == [False, False, True, True]
