"""The bundled trainer: the package of what consumes a plan. It is empty so far."""
