from filters.kernels.python.leveldb import LevelDBBloomFilter as LevelDBBloomFilter
