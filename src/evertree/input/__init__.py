"""User input: arrays, data frames, keys and metrics, checked before anything is changed."""
