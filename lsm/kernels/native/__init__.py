"""The compiled kernel of the engine: what ``lsm/kernels/python`` does, outside of Python's objects."""
