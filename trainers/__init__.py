"""The bundled JAX trainer: a small model trained on the batches of a mixture plan, bitwise resumable.

`trainers.train.train` trains; `trainers.evidence` has comparisons, ladders and declared runs. See ARCHITECTURE §12.
Where to begin reading: `config`, `model`, `step`, `train`; docs/training.md has the whole order.
"""
