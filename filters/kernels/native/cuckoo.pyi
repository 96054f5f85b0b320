from filters.kernels.python.cuckoo import CuckooFilter as CuckooFilter
