from filters.kernels.python.rocksdb import RocksDBBloomFilter as RocksDBBloomFilter
