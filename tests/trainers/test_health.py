import math

from trainers.health import divergence, goodput, sessions, spikes, stalls, tokens_per_second, utilisation


def train(losses, seconds=1.0):
    return [
        {
            "kind": "train",
            "step": step,
            "loss": loss,
            "timing": {"time": 100.0 + (step + 1) * seconds, "seconds": seconds, "tokens_per_second": 64 / seconds},
        }
        for step, loss in enumerate(losses)
    ]


def start(step, time, **environment):
    return {"kind": "start", "step": step, "environment": environment, "timing": {"time": time, "host": "h"}}


def wave(count):
    return [3 - step / 400 + 0.02 * math.sin(step) for step in range(count)]


def test_spike_is_a_loss_far_above_those_before_it_and_nothing_else_is():
    losses = wave(200)
    assert spikes(train(losses)) == []
    losses[120], losses[121], losses[150] = 6.0, 5.0, None
    found = spikes(train(losses))
    assert [(spike.step, spike.loss) for spike in found] == [(120, 6.0), (121, 5.0)]
    assert abs(found[0].expected - 2.75) < 0.1
    assert spikes(train(losses[:121])) == found[:1]  # what is said of a step does not change


def test_run_that_ends_well_above_its_best_has_diverged():
    assert divergence(train(wave(200))) is None
    last, best = divergence(train([*wave(200), *[4.0] * 50]))
    assert last == 4.0 and 2.4 < best < 2.8


def test_step_that_takes_much_longer_is_a_stall():
    lines = train(wave(60))
    lines[40]["timing"]["seconds"] = 30.0
    assert stalls(lines) == [(40, 30.0, 1.0)]


def test_sessions_tell_what_ended_them_and_how_many_steps_were_made_again():
    made = train(wave(12))
    lines = [
        start(0, 100, devices="4", hosts="1", device="cpu"),
        *made[:7],
        start(4, 120, devices="2"),
        *made[4:8],
        {"kind": "stop", "step": 8, "timing": {"time": 130, "reason": "SIGTERM"}},
        start(8, 150, devices="8"),
        *made[8:10],
    ]
    found = sessions(lines)
    assert [(one.first, one.last, one.ended, one.lost, one.devices) for one in found] == [
        (0, 7, "killed", 3, 4),
        (4, 8, "SIGTERM", 0, 2),
        (8, 10, "", 0, 8),
    ]


def test_goodput_counts_a_step_once_against_all_wall_time():
    made = train([3.0] * 8)
    lines = [
        start(0, 100.0),
        *made[:6],
        start(4, 110.0),
        *made[4:],
        {"kind": "stop", "step": 8, "timing": {"time": 120.0}},
    ]
    assert goodput(lines) == 8 / 20
    assert goodput([start(0, 100.0)]) is None


def test_utilisation_is_what_the_model_needs_of_what_the_hardware_could():
    one = {"flop_per_token": 1000, "timing": {"peak_flops": 128_000.0}}
    assert utilisation(one, tokens_per_second(train([3.0] * 9))) == 0.5
    assert utilisation({"timing": {}}, 64.0) is None
