"""Errors of plans. What is wrong with a mixture as written is a `curate.configuration.ConfigurationError`."""

from __future__ import annotations


class PlanError(ValueError):
    """A plan that cannot be read, does not hold together, or does not fit the caches or the plan at hand."""


def outside(what: str, value: int, count: int, whole: str) -> str:
    """Return what is wrong with number `value` of `count`: "step 50: the plan has steps 0 to 19"."""
    return f"{what} {value}: {whole} has {what}s 0 to {count - 1:,}"
