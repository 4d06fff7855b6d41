"""Mixtures of token caches: the package of components, phases and plans. It is empty so far."""
