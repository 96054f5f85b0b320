from filters.kernels.python.xor import XorFilter as XorFilter
