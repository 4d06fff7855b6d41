"""The file of a plan, and what must hold between its fields."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from curate.digests import digest_json
from curate.formats import Format, FormatError
from curate.store import json_line, self_digested
from mixtures.errors import PlanError
from mixtures.permutation import LARGEST
from mixtures.schedule import LONGEST
from mixtures.sequences import Chunks

if TYPE_CHECKING:
    from mixtures.plan import Plan
    from mixtures.plan_fields import Component, Segment

KIND: Final = "mixture plan"
FORMAT: Final = Format(1, "load it with the version that compiled it, or compile the mixture again")
"""Format of the file, and of the arithmetic that turns it into batches."""


def read_fields(text: str) -> dict[str, Any]:
    """Return the fields of the plan whose file holds `text`, without its digest.

    Raises:
        PlanError: `text` is not a plan of this format, or is not what its digest says.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise PlanError(f"not a plan: {error}") from None
    if not isinstance(value, dict):
        raise PlanError("not a plan: it is JSON, but not an object")
    if value.get("kind") != KIND:
        raise PlanError(f"not a plan, kind: {value.get('kind')!r} ≠ {KIND!r}")
    try:
        lifted = FORMAT.lift(value, "the plan")
    except FormatError as error:
        raise PlanError(str(error)) from None
    said = value.pop("digest", None)
    try:
        found = digest_json(value)
    except TypeError as error:
        raise PlanError(f"not a plan: {error}") from None
    if said != found:
        raise PlanError(f"damaged or edited plan, digest: the file says {said}, its fields have {found}")
    return {name: item for name, item in lifted.items() if name != "digest"}


def write_plan(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` and its digest to `path`, whole or not at all.

    Raises:
        PlanError: there is something else already.
    """
    content = json_line(self_digested(dict(value)))
    spool = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with spool.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(spool, path)
    except FileExistsError:
        if path.read_bytes() != content:
            raise PlanError(f"{path} holds another plan, and plans are not overwritten: choose another path") from None
    finally:
        spool.unlink(missing_ok=True)


def check_plan(plan: Plan) -> None:
    """Check that the fields of `plan` fit together.

    Raises:
        PlanError: they do not; names the field.
    """
    for name in ("seed", "batch", "vocabulary", "padding"):
        _require(type(getattr(plan, name)) is int, name, "must be an integer")
    _require(plan.batch >= 1, "batch", "must be at least 1")
    _require(0 <= plan.padding < plan.vocabulary, "padding", f"must be below the vocabulary of {plan.vocabulary}")
    names = [component.name for component in plan.components]
    _require(len(names) > 0, "components", "are empty")
    _require(len(names) == len(set(names)), "components", "have a name twice")
    _require(len(plan.segments) > 0, "segments", "are empty")
    for component in plan.components:
        _check_component(plan, component)
    _require(set(plan.views) <= set(names), "views", f"name unknown components: {sorted(set(plan.views) - set(names))}")
    for name, view in plan.views.items():
        _require(max(view.sentinels) < plan.vocabulary, f"views.{name}", f"must have ids below {plan.vocabulary}")
    for at, segment in enumerate(plan.segments):
        _check_segment(plan, segment, f"segments[{at}]", set(names))


def _check_component(plan: Plan, component: Component) -> None:
    where = f"components.{component.name}"
    _require(component.tokens >= 1, f"{where}.tokens", "must be at least 1")
    fits = plan.sequences.fits(component.sequences, component.tokens)
    _require(fits, f"{where}.sequences", f"cannot be {component.sequences:,} for {component.tokens:,} tokens")
    _require(component.sequences <= LARGEST, f"{where}.sequences", "must be at most 2^40")


def _check_segment(plan: Plan, segment: Segment, where: str, names: set[str]) -> None:
    counts = segment.counts
    _check_updates(plan, segment, where)
    _require(set(counts) <= names, f"{where}.counts", f"name unknown components: {sorted(set(counts) - names)}")
    _require(all(type(count) is int and count >= 1 for count in counts.values()), f"{where}.counts", "must be ≥ 1")
    _require(
        sum(counts.values()) == segment.quota_length, f"{where}.counts", f"must add up to {segment.quota_length:,}"
    )
    _require(segment.quota_length <= LONGEST, f"{where}.quota_length", "must be at most 2^50")
    _require(
        1 <= segment.drawn_length <= segment.quota_length and segment.drawn_length % plan.batch == 0,
        f"{where}.drawn_length",
        f"must be whole batches, at most {segment.quota_length:,}",
    )


def _check_updates(plan: Plan, segment: Segment, where: str) -> None:
    _require(segment.batch % plan.batch == 0, f"{where}.batch", f"must be a multiple of {plan.batch:,}")
    whole = segment.length == 0 or (segment.length >= 2 and plan.sequences.length % segment.length == 0)
    _require(whole, f"{where}.length", f"must divide {plan.sequences.length:,}")
    _require(segment.length == 0 or isinstance(plan.sequences, Chunks), f"{where}.length", "is of chunks only")


def _require(holds: bool, field: str, message: str) -> None:
    if not holds:
        raise PlanError(f"{field} {message}")
