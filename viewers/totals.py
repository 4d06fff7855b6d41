"""The sums from files to an output, over all stages between: what was read is kept, or dropped and cut on record."""

from __future__ import annotations

from collections.abc import Sequence

from viewers.flows import Flow, Identity, flow_of
from viewers.loading import Report, StageView


def path_to(report: Report, output: StageView, source: str) -> list[Flow]:
    """Return the flows of `source` through `output` and all that it is made from, inputs first.

    None for texts held out: what does not come into that part is neither dropped nor kept there.
    """
    wanted = {(output.name, output.key)}
    path: list[Flow] = []
    for stage in reversed(report.stages):
        if (stage.name, stage.key) in wanted:
            if stage.holds_out and stage.part == "valid":
                return []
            wanted |= {(entry["name"], entry["key"]) for entry in stage.manifest["inputs"]}
            if source in stage.sources:
                path.append(flow_of(stage, source))
    return path[::-1]


def total_identities(path: Sequence[Flow]) -> list[Identity]:
    """Return documents and characters from the first to the last of `path`.

    None where a stage of the path feeds two others: there documents are copied, and only the sums of single steps hold.
    """
    if not path or not _is_tree(path):
        return []
    read = sum(flow.reading.count("records") for flow in path if flow.reading is not None)
    dropped = sum(step.dropped for flow in path for step in flow.steps)
    quarantined = sum(flow.taken_out for flow in path)
    out = path[-1]
    right = [("kept", out.documents_out), ("dropped", dropped)]
    right += [("quarantined", quarantined)] if quarantined else []
    documents = Identity("documents", (("records read", read),), tuple(right))
    return [documents, _characters(path)]


def _characters(path: Sequence[Flow]) -> Identity:
    begun = inserted = dropped = cut = 0
    for flow in path:
        if flow.reading is None:
            dropped += sum(drop.characters for drop in flow.quarantined)
        else:
            begun += flow.steps[0].characters_in if flow.steps else flow.characters_out
        for step in flow.steps:
            if step.payload_bytes:
                begun += step.characters_out - step.characters_in
                continue
            inserted += step.inserted
            dropped += step.dropped_characters
            cut += step.cut
    left = (("where text begins", begun), ("inserted", inserted))
    return Identity("characters", left, (("kept", path[-1].characters_out), ("dropped", dropped), ("cut", cut)))


def _is_tree(path: Sequence[Flow]) -> bool:
    stages = {(flow.stage.name, flow.stage.key) for flow in path}
    used: list[tuple[str, str]] = []
    for flow in path:
        used += [(entry["name"], entry["key"]) for entry in flow.stage.manifest["inputs"]]
    mine = [stage for stage in used if stage in stages]
    return len(mine) == len(set(mine))
