from filters.kernels.python.digests import Digests as Digests
