"""Files of any store, and the filters in them: LevelDB's, RocksDB's, Pebble's, Cassandra's, ours.

Whatever is surveyed is only read. A file is mapped, and what it says of lengths is checked before
anything is made of it, so that a table of gigabytes takes the memory of one block.
"""
