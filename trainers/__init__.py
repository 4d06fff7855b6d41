"""The bundled JAX trainer: a small model trained on the batches of a mixture plan, bitwise resumable.

`trainers.train.train` trains, `trainers.compare.compare` tells two mixtures apart. See ARCHITECTURE §12.
"""
