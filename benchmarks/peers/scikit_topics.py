"""scikit-learn's TfidfVectorizer and KMeans on the passages of `benchmarks.topics`; runs in an environment of its own.

Usage: python scikit_topics.py PASSAGES.parquet K. Prints one JSON object a line: labels of two seeds and CPU seconds.
"""

from __future__ import annotations

import json
import sys
import time

import pyarrow.parquet as pq
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer

SETTINGS = {
    "defaults": {},
    "sublinear, rare and common words out": {"sublinear_tf": True, "min_df": 0.001, "max_df": 0.5},
}


def main() -> None:
    """Group the passages with each setting."""
    texts = pq.read_table(sys.argv[1], columns=["text"]).column("text").to_pylist()
    for name, options in SETTINGS.items():
        before = time.process_time()
        vectorizer = TfidfVectorizer(**options)
        rows = vectorizer.fit_transform(texts)
        turned = time.process_time()
        models = [KMeans(int(sys.argv[2]), n_init=1, random_state=seed).fit(rows) for seed in (0, 1)]
        fitted = time.process_time()
        models[0].predict(vectorizer.transform(texts))
        assigned = time.process_time()
        found = {
            "name": name,
            "fit": turned - before + (fitted - turned) / 2,
            "assign": assigned - fitted,
            "labels": [m.labels_.tolist() for m in models],
        }
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
