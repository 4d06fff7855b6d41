"""Mixtures: components, phases and weights compile to a plan; a loader replays it bit for bit. See docs/mixtures.md."""

from mixtures.by_column import ByColumn
from mixtures.cache import Cache
from mixtures.errors import PlanError
from mixtures.explain import Explanation, Location, Place, explain, locate
from mixtures.fill_in_the_middle import FillInTheMiddle
from mixtures.loader import Batch, Loader
from mixtures.mixture import Mixture, Phase
from mixtures.packing import Packing
from mixtures.plan import Plan
from mixtures.plan_fields import Component, Segment, Validation
from mixtures.quotas import AtMost
from mixtures.sequences import Chunks, Packed
from mixtures.weightings import Blend, ByTag, ByTokens, FromTable, Patched, UniMax

__all__ = [
    "AtMost",
    "Batch",
    "Blend",
    "ByColumn",
    "ByTag",
    "ByTokens",
    "Cache",
    "Chunks",
    "Component",
    "Explanation",
    "FillInTheMiddle",
    "FromTable",
    "Loader",
    "Location",
    "Mixture",
    "Packed",
    "Packing",
    "Patched",
    "Phase",
    "Place",
    "Plan",
    "PlanError",
    "Segment",
    "UniMax",
    "Validation",
    "explain",
    "locate",
]
