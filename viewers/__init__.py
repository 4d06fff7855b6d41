"""Static pages about what a recipe made: one HTML file each, no script, no request, every text escaped.

`write_report` writes the composition report of a committed result, `write_index` a front page over many of them.
"""

from viewers.index import write_index
from viewers.report import write_report

__all__ = ["write_index", "write_report"]
