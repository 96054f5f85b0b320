"""The engine's hot functions, which are to be compiled one day."""
