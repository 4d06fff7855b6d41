from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.configuration import ConfigurationError
from mixtures.quotas import AtMost, Request, _shares, draw_counts
from mixtures.rounding import UNIT, round_table


def request(length, name="main", **weights):
    return Request(name, length, {key: Fraction(value) for key, value in weights.items()})


def hamilton(length, weights):
    """Largest remainder in fractions; ties to the name that sorts first."""
    total = sum(weights.values())
    shares = {name: Fraction(length * weight, total) for name, weight in sorted(weights.items())}
    counts = {name: int(share) for name, share in shares.items()}
    ranked = sorted(shares, key=lambda name: (counts[name] - shares[name], name))
    for name in ranked[: length - sum(counts.values())]:
        counts[name] += 1
    return {name: count for name, count in counts.items() if count}


weights_of = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=3), st.integers(1, 10**9).map(lambda n: Fraction(n, 10**9)), min_size=1
)


@given(weights_of, st.integers(200, 10**12))
def test_counts_of_one_phase_are_those_of_hamilton(weights, length):
    expected = hamilton(length, weights)
    if len(expected) == len(weights):
        assert draw_counts([Request("main", length, weights)], {}, "refuse") == [expected]
    else:
        with pytest.raises(ConfigurationError, match="would never draw"):
            draw_counts([Request("main", length, weights)], {}, "refuse")


@given(weights_of, st.integers(1, 3000))
def test_counts_rounded_up_draw_each_component_and_add_up(weights, length):
    if length < len(weights):
        with pytest.raises(ConfigurationError, match="too short to draw each"):
            draw_counts([Request("main", length, weights)], {}, "round up")
        return
    (counts,) = draw_counts([Request("main", length, weights)], {}, "round up")
    assert counts.keys() == weights.keys()
    assert min(counts.values()) >= 1
    assert sum(counts.values()) == length


def test_counts_in_a_tie_favour_the_name_that_sorts_first():
    assert draw_counts([request(4, b=1, a=1, c=1)], {}, "refuse") == [{"a": 2, "b": 1, "c": 1}]


def test_counts_of_a_tiny_weight_are_refused_with_its_share():
    with pytest.raises(ConfigurationError, match=r"phase 'main' of 1,000 sequences would never draw rare \(0\.01\)"):
        draw_counts([request(1000, web=99_999, rare=1)], {}, "refuse")
    assert draw_counts([request(1000, web=99_999, rare=1)], {}, "round up") == [{"rare": 1, "web": 999}]


def test_counts_of_a_weight_of_zero_are_left_out():
    assert draw_counts([request(10, web=1, code=0)], {}, "refuse") == [{"web": 10}]


def test_counts_above_a_cap_go_to_others_by_their_weights():
    assert draw_counts([request(1000, a=8, b=1, c=1)], {"a": 100}, "refuse") == [{"a": 100, "b": 450, "c": 450}]


def test_counts_above_a_cap_that_redistribution_causes_are_capped_too():
    counts = draw_counts([request(1000, a=8, b=1, c=1)], {"a": 100, "b": 200}, "refuse")
    assert counts == [{"a": 100, "b": 200, "c": 700}]


def test_counts_of_a_scarce_component_are_split_over_phases_as_asked():
    """Asked 100 and 300, 200 there: each phase gets half of what it asked."""
    requests = [request(1000, "main", good=1, web=9), request(600, "cooldown", good=1, web=1)]
    counts = draw_counts(requests, {"good": 200}, "refuse")
    assert counts == [{"good": 50, "web": 950}, {"good": 150, "web": 450}]


def test_counts_move_to_the_phase_that_has_nothing_else():
    requests = [request(1000, "main", web=3, code=1), request(90, "cooldown", code=1)]
    counts = draw_counts(requests, {"code": 100}, "refuse")
    assert counts == [{"code": 10, "web": 990}, {"code": 90}]


def test_counts_that_caps_make_impossible_are_refused_with_what_is_lacking():
    with pytest.raises(ConfigurationError, match="leave phase 'main' 300 of its 1,000 sequences short"):
        draw_counts([request(1000, a=1, b=1)], {"a": 400, "b": 300}, "refuse")


@st.composite
def problems(draw):
    names = [f"c{i:02}" for i in range(draw(st.integers(1, 12)))]
    phases = draw(st.integers(1, 4))
    weight = st.one_of(st.just(0), st.integers(1, 5), st.integers(1, 10**6))
    requests = []
    for phase in range(phases):
        weights = {name: Fraction(draw(weight)) for name in names}
        weights[draw(st.sampled_from(names))] = Fraction(1)
        requests.append(Request(f"p{phase}", draw(st.integers(1, 500)), weights))
    caps = {name: draw(st.integers(0, 400)) for name in names if draw(st.booleans())}
    return requests, caps


def feasible(requests, caps):
    """Whether any table fulfils the caps, by Hall's condition over sets of phases."""
    for chosen in range(1, 1 << len(requests)):
        some = [request for at, request in enumerate(requests) if chosen >> at & 1]
        names = {name for request in some for name, weight in request.weights.items() if weight}
        if all(name in caps for name in names) and sum(caps[name] for name in names) < sum(r.length for r in some):
            return False
    return True


@settings(max_examples=400)
@given(problems())
def test_counts_with_caps_are_found_whenever_they_exist(problem):
    requests, caps = problem
    names = sorted({name for request in requests for name in request.weights})
    weights = [[int(request.weights[name]) for name in names] for request in requests]
    limits = [caps.get(name) for name in names]
    totals = [request.length for request in requests]
    shares, full = _shares(weights, totals, limits)
    table = round_table(shares, totals, limits, full)
    assert all(count >= 0 for row in table.counts for count in row)
    for row, asked in zip(table.counts, weights, strict=True):
        assert all(weight or not count for count, weight in zip(row, asked, strict=True))
    for at, name in enumerate(names):
        assert name not in caps or sum(row[at] for row in table.counts) <= caps[name]
    for need, row, total in zip(table.needs, table.counts, totals, strict=True):
        assert sum(row) + need == total
    assert (not any(table.needs)) == feasible(requests, caps)


@settings(max_examples=200)
@given(problems())
def test_counts_with_caps_do_not_depend_on_the_order_of_components(problem):
    requests, caps = problem

    def solve(turned):
        try:
            return draw_counts(turned, caps, "round up")
        except ConfigurationError as error:
            return str(error)

    backwards = [Request(r.name, r.length, dict(reversed(r.weights.items()))) for r in requests]
    assert solve(requests) == solve(backwards)


def test_rounding_keeps_every_count_within_one_of_its_share_where_no_cap_interferes():
    shares = [[UNIT * 5 // 2, UNIT * 5 // 2, 0], [UNIT // 3, UNIT // 3, UNIT * 4 // 3]]
    table = round_table(shares, [5, 2], [None] * 3, [False] * 3)
    assert table.counts == [[3, 2, 0], [1, 0, 1]]
    assert table.needs == [0, 0]


def test_rounding_saturates_columns_at_their_cap():
    half = UNIT // 2
    table = round_table([[half, half], [half, half]], [1, 1], [1, None], [True, False])
    assert sum(row[0] for row in table.counts) == 1
    assert table.needs == [0, 0]


def test_at_most_takes_fractions_of_epochs_and_rounds_down():
    assert AtMost(2.5).draws(5) == 12
    assert AtMost("1/3").draws(10) == 3
    for epochs, then in ((0, "stop"), (-1, "stop"), (True, "stop"), (2, "go on")):
        with pytest.raises(ConfigurationError, match="AtMost"):
            AtMost(epochs, then)


def test_counts_of_two_thousand_components_in_three_phases_with_caps_take_seconds_at_most():
    names = [f"cell{i:04}" for i in range(2000)]
    requests = [
        Request(
            f"p{p}",
            10**12,
            {name: Fraction(1 + (i * 7919 + p * 104729) % 10**9, 10**9) for i, name in enumerate(names)},
        )
        for p in range(3)
    ]
    caps = {name: 10**9 + i * 10**6 for i, name in enumerate(names[:1990])}
    counts = draw_counts(requests, caps, "refuse")
    assert [sum(count.values()) for count in counts] == [10**12] * 3
    for name, cap in caps.items():
        assert sum(count[name] for count in counts) <= cap
