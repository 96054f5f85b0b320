from filters.kernels.python.ribbon import RocksDBRibbonFilter as RocksDBRibbonFilter
