"""What users pass: arrays, data frames, keys and metrics, checked before anything is changed."""
