"""Published mixtures: the plan is compiled again from `mixture.json` alone, with the same digest."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from curate.store import self_digested
from mixtures import AtMost, Blend, ByTokens, Chunks, FillInTheMiddle, Mixture, Packed, Phase, PlanError
from mixtures.published import DescribedCache, mixture_json, rebuild, write_mixture
from tests.mixtures.memory import make_cache

PHASES = (
    Phase("main", tokens=4_000, weights={"web": "2/3", "code": 0.1}, others=1, minimum={"code": "1/20"}),
    Phase("anneal", tokens=1_600, weights=Blend(ByTokens(temperature=2), {"web": 1}, "1/3"), batch=8, length=16),
)


def caches():
    return {
        name: make_cache(name, [5 + (number * 7 + at) % 60 for at in range(40)])
        for number, name in enumerate(("books", "code", "web"))
    }


@pytest.mark.parametrize(
    "mixture",
    [
        Mixture(None, *PHASES, sequences=Chunks(32), repeats=AtMost("5/2"), batch=4, seed=5),
        Mixture(None, *PHASES, sequences=Chunks(32, Fraction(2, 3)), repeats=AtMost(4, then="stop"), batch=4, seed=-1),
        Mixture(
            None,
            PHASES[0],
            sequences=Packed(48),
            repeats=None,
            rare="merge:tail",
            batch=2,
            views={"code": FillInTheMiddle(91, 92, 93, rate="1/2")},
        ),
    ],
)
def test_published_mixture_compiles_to_the_digest_of_the_plan(mixture, tmp_path):
    made = caches()
    held = {"held": make_cache("held", [30])}
    plan = mixture.compile(made, held)
    plan.save(tmp_path / "plan.json")
    write_mixture(tmp_path / "mixture.json", mixture_json(mixture, plan, made, held))
    for name, content in mixture.files(plan, made).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert rebuild(tmp_path).digest == plan.digest


def test_mixture_of_another_plan_is_not_published():
    made = caches()
    mixture = Mixture(None, PHASES[0], sequences=Chunks(32), batch=4)
    plan = Mixture(None, PHASES[0], sequences=Chunks(32), batch=4, seed=8).compile(made)
    with pytest.raises(PlanError, match="compiles to another plan"):
        mixture_json(mixture, plan, made, {})


def test_published_mixture_that_was_changed_is_refused(tmp_path):
    made = caches()
    mixture = Mixture(None, PHASES[0], sequences=Chunks(32), batch=4)
    value = mixture_json(mixture, mixture.compile(made), made, {})
    (tmp_path / "mixture.json").write_text(json.dumps({**value, "seed": 9}))
    with pytest.raises(PlanError, match="damaged"):
        rebuild(tmp_path)
    rest = {name: item for name, item in value.items() if name != "digest"}
    write_mixture(tmp_path / "mixture.json", self_digested({**rest, "seed": 9}))
    with pytest.raises(PlanError, match="another plan than was published"):
        rebuild(tmp_path)
    with pytest.raises(PlanError, match="no mixture"):
        rebuild(tmp_path / "none")


def test_described_cache_has_no_tokens():
    cache = DescribedCache("web", "d" * 64, 10, 2, "t" * 64, 100, None)
    for ask in (lambda: cache.read(0, 1), lambda: cache.read_many([(0, 1)]), lambda: cache.borders(0, 10)):
        with pytest.raises(PlanError, match="are not published"):
            ask()
    with pytest.raises(PlanError, match="are not published"):
        cache.read_untrained([(0, 1)])
    assert len(cache.text_digests()) == 0
