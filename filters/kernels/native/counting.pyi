from filters.kernels.python.counting import CountingBloomFilter as CountingBloomFilter
