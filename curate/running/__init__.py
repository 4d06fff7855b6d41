"""Running stages: the engine, its jobs and runners, the journal, progress, warming kernels, stopping in order."""
