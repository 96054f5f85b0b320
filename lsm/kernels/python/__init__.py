"""The readable kernel of the engine: each hot function in plain Python."""
