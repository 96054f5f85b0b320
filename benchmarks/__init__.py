"""Measurements: a first table of all families, and the simulations that their tables come from."""
