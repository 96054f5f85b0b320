from filters.kernels.python.binary_fuse import BinaryFuseFilter as BinaryFuseFilter
