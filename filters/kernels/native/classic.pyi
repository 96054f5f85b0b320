from filters.kernels.python.classic import ClassicBloomFilter as ClassicBloomFilter
