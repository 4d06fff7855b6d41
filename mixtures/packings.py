"""The packings of a plan's components: made again from caches, or read from where they were stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from curate.store import Store, StoreError
from mixtures.cache import Cache
from mixtures.errors import PlanError
from mixtures.packing import Packing
from mixtures.plan import Plan


def packings_of(
    plan: Plan, caches: Mapping[str, Cache], stored: Callable[[str], bytes | None] = lambda digest: None
) -> Mapping[str, Packing]:
    """Return component → how its documents are packed; nothing for chunks.

    Args:
        plan: whose components they are.
        caches: component → its cache.
        stored: digest → the file of that packing, or None where it is not stored: it is then made again.

    Raises:
        PlanError: a packing is not the one that the plan was compiled with.
    """
    found = {}
    for component in plan.components:
        if component.packing:
            if component.name in plan.packings:
                found[component.name] = plan.packings[component.name]
                continue
            content = stored(component.packing)
            packing = (
                plan.sequences.packing_of(caches[component.name]) if content is None else Packing.from_bytes(content)
            )
            if packing is None or packing.digest != component.packing:
                raise PlanError(
                    f"the documents of {component.name!r} are packed in another way than when the plan was compiled, "
                    f"packing: {component.packing} ≠ {None if packing is None else packing.digest}"
                )
            found[component.name] = packing
    return found


def packings_in(store: Store, folder: str, plan: Plan, caches: Mapping[str, Cache]) -> Mapping[str, Packing]:
    """Return the packings that the result in `folder` was stored with; nothing for a plan of chunks.

    Raises:
        StoreError: one is damaged.
    """

    def stored(digest: str) -> bytes | None:
        name = f"{folder}/packings/{digest}"
        return store.read_bytes(name) if store.exists(name) else None

    try:
        return packings_of(plan, caches, stored)
    except PlanError as error:
        raise StoreError(
            f"{store.url(folder)}: {error}; remove its folder packings, and run the recipe again"
        ) from error
