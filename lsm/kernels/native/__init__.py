"""The compiled kernel of the engine."""
