"""The panels of the composition report, one module each, in the order in which a reader needs them."""
