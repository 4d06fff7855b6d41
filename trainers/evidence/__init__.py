"""Evidence: comparisons of mixtures, scaling ladders, forecasts, declared runs and diaries, made with the trainer."""
