"""Models that stages fit on datasets, for transforms of the same recipe: see `curate.recipes.models`.

`thresholds` fits the bounds of a filter to what a corpus is like, `levels` the borders of scores to shares of it,
`classifier` a model that tells documents of two classes apart, `topics` the groups that documents fall into.
"""
