"""A runner of benchmarks: all tasks in this process, one after the other, with CPU seconds by kind of task."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from curate.running.jobs import Item, Job
from curate.running.runners import Attempt, LocalRunner


@dataclass(frozen=True, slots=True)
class TimedRunner:
    """Runs items in this process and adds up CPU seconds by job."""

    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        """Run all items in order."""
        since = time.process_time()
        for attempt in LocalRunner().run(job, items):
            self.seconds[job.name] = self.seconds.get(job.name, 0.0) + time.process_time() - since
            yield attempt
            since = time.process_time()
