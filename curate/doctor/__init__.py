"""What a machine needs to run recipes, looked at one by one, with a remedy for what it lacks.

`examine` is what `curate doctor` prints. A look reads or tries; it leaves nothing behind.
"""

from curate.doctor.examination import NAMES, examine
from curate.doctor.finding import Finding

__all__ = ["NAMES", "Finding", "examine"]
