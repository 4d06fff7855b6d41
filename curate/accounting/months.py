"""Months of crawls, as statistics tell them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from curate.accounting.measures import Coded, coded

MILLISECONDS_OF_A_DAY: Final = 86_400_000
YEAR_0: Final = 1970
YEARS: Final = range(1990, 2100)
"""Years of crawls that are told apart by month: what is said of others is a mistake, and would be without bounds."""
OTHER_MONTH: Final = "other"


def months_of(crawled: pa.TimestampArray) -> list[str]:
    """Return the month of each of these times, none of them null, as "2008-05"; of years that no crawl had "other"."""
    days = np.asarray(crawled.cast(pa.int64()), np.int64) // MILLISECONDS_OF_A_DAY
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    years, month = YEAR_0 + months // 12, months % 12 + 1
    told = zip(years.tolist(), month.tolist(), strict=True)
    return [f"{year}-{number:02d}" if year in YEARS else OTHER_MONTH for year, number in told]


def months_in(batch: pa.RecordBatch) -> Coded | None:
    """Return the month in which each document of `batch` was crawled, None where nobody says; None without a column."""
    if batch.schema.get_field_index("crawled_at") < 0:
        return None
    crawled = batch.column("crawled_at")
    there = np.flatnonzero(np.asarray(crawled.is_valid()))
    codes = np.zeros(batch.num_rows, np.int64)
    if not len(there):
        return Coded([None], codes)
    found = coded(pa.array(months_of(crawled.take(pa.array(there))), pa.large_string()))
    codes[there] = found.codes + 1
    return Coded([None, *found.values], codes)
