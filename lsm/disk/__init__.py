"""LevelDB's files on disk, one format to a file.

Nothing here opens a database or knows of one: bytes go in and come out. Whatever is read counts as
damaged until its lengths and checksums say otherwise, and then CorruptionError names the place.
"""
