"""What the compiled kernel is to reach, beside its peers in the same run: every target there is."""

from __future__ import annotations

from benchmarks.rows import Target

TARGETS = {
    "hit": Target(0.95, "a single probe that hits, keys in order: at most 0.95 x abloom"),
    "miss": Target(0.6, "a single probe that misses, keys in order: at most 0.6 x abloom"),
    "hit-shuffled": Target(1.1, "a single probe that hits, keys shuffled: at most 1.1 x abloom"),
    "miss-shuffled": Target(1.0, "a single probe that misses, keys shuffled: at most 1 x abloom"),
    "list": Target(0.2, "a batch of 4096 keys from a list: at most 0.2 x fastbloom_rs"),
    "buffer": Target(0.5, "a key of a buffer, hash included: at most half an empty compiled call"),
    "build": Target(0.7, "building from a list: at most 0.7 x abloom's update"),
    "fuse-build": Target(
        1.0, "building binary fuse from a list: at most 1 x pyfusefilter's C layer"
    ),
    "fuse-build-large": Target(
        2.0, "building binary fuse of 30 M keys: at most 2 x what a key of 1 M costs"
    ),
    "cuckoo-build": Target(5.0, "building cuckoo from a list: at most 5 x blocked"),
    "cuckoo-probe": Target(1.5, "a single probe of cuckoo: at most 1.5 x blocked"),
    "ribbon-build": Target(5.0, "building a Ribbon filter from a list: at most 5 x blocked"),
    "ribbon-probe": Target(
        3.0, "a probe of a Ribbon filter, alone or of a buffer: at most 3 x blocked"
    ),
    "large": Target(1.6, "a key of a buffer in a filter of 1 GB: at most 1.6 random cache lines"),
    "threads": Target(1.7, "two threads: at least 1.7 x the keys of one", at_least=True),
}
