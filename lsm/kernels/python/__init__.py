"""The readable kernel of the engine: each hot seam in plain Python."""
