import json
from functools import partial

import pytest

from curate.cluster.clusters import StartedRay
from curate.configuration import ConfigurationError
from tests.trainers.hosting import work
from tests.trainers.training import STRICT, run
from trainers.log import read_log
from trainers.supervised import LostWorkersError, Workers, supervise


@pytest.fixture
def ray_here():
    ray = pytest.importorskip("ray")
    cluster = StartedRay(2)
    cluster.connect()
    yield ray
    cluster.disconnect()


@pytest.mark.slow
@pytest.mark.ray
def test_two_hosts_of_which_one_is_killed_end_as_one_process_undisturbed(ray_here, tmp_path):
    told = []
    settings = {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "",
        "PYTHONPATH": ".",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
    }
    workers = Workers(fewest=1, most=2, losses=3, settings=settings)
    folder = tmp_path / "run"
    folder.mkdir()
    found = supervise(partial(work, folder=str(folder)), workers, told.append)
    assert found.result == run(tmp_path / "calm", config=STRICT, validation={}).digest
    assert found.workers[0] == 2
    assert len(found.workers) == 2
    assert any(line.startswith("a worker was lost") for line in told)
    starts = read_log(folder).starts
    assert [line["environment"]["hosts"] for line in starts] == [str(count) for count in found.workers]
    assert json.dumps(starts[1]["changed"]) == "[]"


def test_workers_that_are_lost_too_often_or_fail_by_themselves_end_the_run(monkeypatch):
    class LostError(RuntimeError):
        pass

    class FailedError(RuntimeError):
        def as_instanceof_cause(self):
            return ValueError("no good")

    fake = FakeRay(LostError, FailedError)
    monkeypatch.setitem(__import__("sys").modules, "ray", fake)
    with pytest.raises(LostWorkersError, match="lost 3 times"):
        supervise(lambda place: fake.lose(), Workers(most=4, losses=2))
    assert fake.sizes == [4, 4, 4]
    with pytest.raises(ValueError, match="no good"):
        supervise(lambda place: fake.fail(), Workers())
    with pytest.raises(LostWorkersError, match="lost 1 times"):  # the others fail because one is gone
        supervise(lambda place: fake.lose() if place.process == 3 else fake.fail(), Workers(most=4, losses=0))
    with pytest.raises(ValueError, match="no good"):
        supervise(lambda place: fake.fail() if place.process else 0, Workers(most=4))
    found = supervise(lambda place: place.process, Workers(fewest=1, most=3))
    assert (found.result, found.workers) == (0, (2,))
    with pytest.raises(ConfigurationError, match="from 2 to 1"):
        Workers(fewest=2)


class FakeRay:
    """What `supervise` uses of Ray, in this process: calls are made when their results are asked for."""

    def __init__(self, lost, failed):
        self.exceptions = type("exceptions", (), {"RayActorError": lost, "RayTaskError": failed})
        self.sizes = []

    def lose(self):
        raise self.exceptions.RayActorError("the actor died")

    def fail(self):
        raise self.exceptions.RayTaskError

    def available_resources(self):
        return {"CPU": 5.0}

    def remote(self, **asked):
        class Method:
            def __init__(self, call):
                self.remote = lambda *given: partial(call, *given)

        class Actor:
            meeting_point = Method(lambda: "here:1")
            call = Method(lambda work, place: work(place))

        return lambda kind: type("Remote", (), {"remote": staticmethod(Actor)})

    def wait(self, calls, num_returns, timeout=None):
        if len(calls) > 1 or not self.sizes:
            self.sizes.append(len(calls))
        return calls[:1], calls[1:]

    def get(self, calls):
        return [call() for call in calls] if isinstance(calls, list) else calls()

    def kill(self, actor):
        pass
