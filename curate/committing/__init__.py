"""From receipts of tasks to the manifest of a stage: merged in a tree, so that nothing of size meets the driver."""
