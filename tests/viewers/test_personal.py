"""The panel on personal data: what was masked by source and kind, what was not looked for, how well it is found."""

from __future__ import annotations

from typing import Any

from curate.configuration import describe
from tests.viewers.parsed import parse, tables
from tests.viewers.stores import documents, report, stage
from transforms import MaskPII, NormalizeText, Switch
from transforms.pii.measured import measured
from viewers.loading import StageView
from viewers.masking import unmasked_sources
from viewers.panels.personal import personal


def masked(*transforms: Any, **edits: dict[str, int]) -> StageView:
    """Return a stage of these steps whose first one has `edits` in the source "web"; reasons with _ for spaces."""
    names = [f"step {place}" for place in range(len(transforms))]
    steps = [{"name": name, "transform": describe(t)} for name, t in zip(names, transforms, strict=True)]
    counts = {reason.replace("_", " "): {"cut": 0, **counts} for reason, counts in edits.items()}
    flow = {"documents_in": 9, "documents_out": 9, "characters_in": 0, "characters_out": 0, "edits": counts}
    statistics = {"steps": {"00": {"name": names[0], "sources": {"web": flow}}}, "groups": {"source": {"web": {}}}}
    operation = {"operation": "documents", "reader": None, "steps": steps}
    return stage(manifest={"operation": operation}, statistics=statistics)


def test_personal_masks_are_counted_by_source_and_kind() -> None:
    made = masked(
        MaskPII.only("email", "phone"),
        phone_number={"documents": 2, "inserted": 3 * len("<phone>"), "cut": 40},
        secret={"documents": 1, "inserted": 8},
    )
    root = parse(personal(report(made)).markup().html)
    (caption,) = [name for name in tables(root) if name.startswith("Masked in")]
    assert tables(root)[caption][1:] == [
        ["web", "phone number", "2", "3", "40"],
        ["web", "secret", "1", "not known", "0"],
    ]
    assert "masks e-mail, phone number. Not looked for: ip address, payment card, iban, secret." in root.text


def test_personal_masks_within_a_branch_are_found() -> None:
    made = masked(Switch("language", en=[MaskPII()]), others={"documents": 1, "inserted": 0})
    text = parse(personal(report(made)).markup().html).text
    assert "masks e-mail, phone number, ip address, payment card, iban, secret." in text
    assert "Nothing of these was found." in text


def test_personal_without_a_mask_says_so() -> None:
    assert "No stage of this recipe masks" in parse(personal(report(masked(NormalizeText()))).markup().html).text


def test_personal_precision_is_that_of_the_card() -> None:
    rows = tables(parse(personal(report(masked(MaskPII()))).markup().html))[
        "Personal data: how well each kind is found"
    ]
    names = {
        "e-mail": "email",
        "ip address, version 4": "ipv4",
        "ip address, version 6": "ipv6",
        "phone number": "phone",
    }
    assert [names.get(row[0], row[0].replace(" ", "_")) for row in rows[1:]] == list(measured())
    assert rows[1][3] == str(measured()["email"].right + measured()["email"].missed)


def test_masking_that_leads_to_no_output_masks_nothing_that_comes_out() -> None:
    mask = {"class": "MaskPII", "version": "1", "fields": {"email": "<email>"}}
    operation = {"operation": "documents", "reader": None, "steps": [{"name": "MaskPII", "transform": mask}]}
    read = stage("read", statistics=documents("web", 3), manifest={"rows": 3})
    entry = {"name": "read", "key": read.key}
    tried = stage(
        "tried", statistics=documents("web", 3), manifest={"rows": 3, "operation": operation, "inputs": [entry]}
    )
    assert unmasked_sources(report(tried, read)) == ["web"]
    assert unmasked_sources(report(read, tried)) == []
