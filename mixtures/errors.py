"""Errors of plans. What is wrong with a mixture as written is a `curate.configuration.ConfigurationError`."""

from __future__ import annotations


class PlanError(ValueError):
    """A plan that cannot be read, does not hold together, or does not fit the caches or the plan at hand."""
