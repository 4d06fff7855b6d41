"""Foreign parsers and users' functions in a child process: what takes it down is judged, and the shard goes on.

`limits` and `machine` say what a document may cost, `arena`, `pipes` and `replies` carry batches and outcomes, `child`
is what the child runs, `process` the worker's handle of it, `crew` keeps one per thread, `judging` tries suspects
alone, `step` wraps a transform, `guard` does it for a shard and keeps the quarantine list. See docs/quarantine.md.
"""
