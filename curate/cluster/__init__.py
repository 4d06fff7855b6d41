"""Running tasks on Ray: a cluster that is started here or runs already, its nodes, workers and retries."""
