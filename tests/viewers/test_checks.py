from __future__ import annotations

from typing import Any

import pytest

from curate.configuration import ConfigurationError
from tests.viewers.stores import documents, report, stage
from viewers.checks import check_report
from viewers.flows import flow_of
from viewers.loading import Report
from viewers.totals import path_to, total_identities
from viewers.verdict import ANY, IDS, Verdict, objections

READING = {
    "records": {"read": {"count": 12, "stored": 1200}},
    "refused": {"http status": {"count": 2, "stored": 30}},
    "structural": {"request": {"count": 3, "stored": 60}},
    "total": {"stored": 1290},
}
STEP = {
    "documents_in": 12,
    "documents_out": 10,
    "characters_in": 130,
    "characters_out": 100,
    "dropped": {"GopherQuality": {"too few words": {"documents": 2, "characters": 25}}},
    "edits": {"spaces": {"documents": 4, "cut": 8, "inserted": 3}},
}
DEDUPLICATES = {"operation": {"operation": "deduplicate"}}
ALWAYS = [name for name in IDS[:16] if name != "recall-measured"]


def result(reading: dict[str, Any] = READING, step: dict[str, Any] = STEP, kept: int = 10, **more: Any) -> Report:
    statistics = documents("web", kept, reading={"web": reading}, steps={"00": {"name": "F", "sources": {"web": step}}})
    first = stage("read", statistics=statistics, manifest={"rows": kept})
    passed = {"documents_in": 10, "documents_out": 10, "characters_in": 100, "characters_out": 100}
    last = stage(
        "last",
        statistics=documents("web", 10, steps={"00": {"name": "G", "sources": {"web": passed}}}, **more),
        manifest={"rows": 10, "inputs": [{"name": "read", "key": first.key, "digest": "0" * 64}]},
    )
    return report(first, last)


def verdicts(report: Report) -> dict[str, Verdict]:
    return {check.id: check.verdict for check in check_report(report)}


@pytest.mark.parametrize("kind", ["deduplicate", "deduplicate by a column", "deduplicate semantically", "cut repeats"])
def test_checks_know_every_kind_of_deduplication(kind: str) -> None:
    found = report(stage(manifest={"operation": {"operation": kind}}))
    assert verdicts(found)["deduplicated"] is Verdict.PASS
    assert kind in next(check.finding for check in check_report(found) if check.id == "deduplicated")
    assert verdicts(report(stage()))["deduplicated"] is Verdict.WARN


def test_checks_have_stable_ids_in_order() -> None:
    assert [check.id for check in check_report(result())] == ALWAYS
    assert [check.id for check in check_report(report(stage()))] == ALWAYS
    assert ALWAYS[-1] == "benchmarks-checked" and len(set(IDS)) == len(IDS)


def test_objections_are_to_the_checks_that_were_asked_for() -> None:
    sound, broken = check_report(result()), check_report(result(kept=9))
    assert list(objections(sound, [ANY, "no-gaps"])) == []
    (warned,) = objections(sound, ["licences-known", "no-gaps"])
    assert warned.startswith("licences-known: warn: unknown for 10 of 10 documents")
    failed = list(objections(broken, [ANY]))
    assert [line.split(":")[0] for line in failed] == ["stages-joined"]
    assert list(objections(broken, ["stages-joined", ANY])) == failed
    (absent,) = objections(sound, ["plan-adds-up"])
    assert absent == "plan-adds-up: not made, for this result has nothing to check"
    with pytest.raises(ConfigurationError, match=r"no check 'licence-known'.*licences-known"):
        list(objections((), ["licence-known"]))


def test_checks_sound_result_fails_nothing() -> None:
    found = verdicts(result())
    warned = {name for name, verdict in found.items() if verdict is Verdict.WARN}
    assert Verdict.FAIL not in found.values()
    assert warned == {
        "licences-known",
        "optout-checked",
        "personal-data-masked",
        "deduplicated",
        "benchmarks-checked",
    }


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        ("documents-conserved", result(step={**STEP, "documents_in": 13})),
        ("documents-conserved", result(step={**STEP, "dropped": {}})),
        ("characters-conserved", result(step={**STEP, "characters_out": 99})),
        ("characters-conserved", result(step={**STEP, "edits": {}})),
        ("bytes-conserved", result(reading={**READING, "total": {"stored": 1291}})),
        ("bytes-conserved", result(reading={**READING, "refused": {}})),
        ("stages-joined", result(kept=9)),
        ("manifests-agree", report(stage(statistics=documents("web", 3), manifest={"rows": 4}))),
        ("manifests-agree", report(stage(shard_rows=1))),
        ("manifests-agree", report(stage(shards=2))),
        ("outputs-filled", report(stage())),
    ],
)
def test_checks_numbers_that_do_not_add_up_fail(check: str, broken: Report) -> None:
    assert verdicts(broken)[check] is Verdict.FAIL


@pytest.mark.parametrize(
    ("check", "doubtful"),
    [
        (
            "no-gaps",
            result(reading={**READING, "gaps": {"damage": {"count": 1, "stored": 5}}, "total": {"stored": 1295}}),
        ),
        ("sources-reach-outputs", report(stage(statistics={"reading": {"web": READING}}))),
        ("quarantine-empty", report(stage(manifest={"quarantine": "9" * 64}))),
        ("pairs-compared", report(stage(manifest=DEDUPLICATES, statistics={"duplicates": {"given_up": 3}}))),
    ],
)
def test_checks_what_a_reader_should_know_warns(check: str, doubtful: Report) -> None:
    assert verdicts(doubtful)[check] is Verdict.WARN


def test_checks_rights_are_read_from_the_statistics() -> None:
    known = {"rights": {"web": {"MIT": {"page": {"documents": 10, "characters": 100}}}}}
    looked_at = {"optout": {"web": {"tdm": {"no": 9, "yes": 1}}}}
    found = verdicts(result(**known, **looked_at))
    assert found["licences-known"] is found["optout-checked"] is Verdict.PASS
    half = verdicts(result(optout={"web": {"tdm": {"no": 9, "not checked": 1}}}))
    assert half["optout-checked"] is Verdict.WARN


def test_checks_quarantined_documents_join_reading_and_steps() -> None:
    gone = {"dropped": {"F": {"quarantined: crashed": {"documents": 2, "characters": 9}}}}
    read = {**READING, "records": {"read": {"count": 14, "stored": 1200}}}
    statistics = documents(
        "web",
        10,
        reading={"web": read},
        quarantine={"name": "quarantine", "sources": {"web": gone}},
        steps={"00": {"name": "F", "sources": {"web": STEP}}},
    )
    found = report(stage(statistics=statistics, manifest={"rows": 10, "quarantine": "9" * 64}))
    assert verdicts(found)["documents-conserved"] is Verdict.PASS
    assert verdicts(found)["quarantine-empty"] is Verdict.WARN
    assert flow_of(found.stages[0], "web").documents_in == 14


def test_checks_quarantined_documents_of_a_step_warn_and_are_counted() -> None:
    dropped = {"F": {"quarantined: hung": {"documents": 2, "characters": 30}}}
    steps = {"00": {"name": "F", "sources": {"web": {**STEP, "dropped": dropped}}}}
    found = report(stage(statistics=documents("web", 10, steps=steps), manifest={"rows": 10}))
    (check,) = (check for check in check_report(found) if check.id == "quarantine-empty")
    assert (check.verdict, check.finding) == (
        Verdict.WARN,
        "2 documents quarantined: no step could be applied to them",
    )


def test_totals_from_files_to_output_hold_their_numbers() -> None:
    found = result()
    sums, characters = total_identities(path_to(found, found.stages[-1], "web"))
    assert (sums.left, sums.right) == ((("records read", 12),), (("kept", 10), ("dropped", 2)))
    assert characters.left == (("where text begins", 130), ("inserted", 3))
    assert characters.right == (("kept", 100), ("dropped", 25), ("cut", 8))
    assert sums.holds and characters.holds


def test_totals_stage_that_feeds_two_others_gives_none() -> None:
    first = stage("a", statistics=documents("web", 5), manifest={"rows": 5})
    source = [{"name": "a", "key": first.key, "digest": "0" * 64}]
    two = [stage(name, statistics=documents("web", 5), manifest={"rows": 5, "inputs": source}) for name in "bc"]
    both = [{"name": s.name, "key": s.key, "digest": "0" * 64} for s in two]
    last = stage("d", statistics=documents("web", 10), manifest={"rows": 10, "inputs": both})
    assert total_identities(path_to(report(first, *two, last), last, "web")) == []
