from filters.kernels.python.blocked import BlockedBloomFilter as BlockedBloomFilter
