from filters.kernels.python.scalable import ScalableBloomFilter as ScalableBloomFilter
