"""Measurements beside other libraries, in one run: see `make bench`."""
