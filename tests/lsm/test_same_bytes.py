"""Both kernels leave the same files, to the byte, after the same operations and jobs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lsm
from tests.effort import by_effort

pytest.importorskip("lsm.kernels.native")

PROGRAM = """
import random, sys
import lsm, policies
from filters import hashing
hashing.random64 = lambda: 7  # every filter draws a salt, and one kernel's memtables a seed
path, seed, compression, policy, operations = sys.argv[1:]
rng = random.Random(int(seed))
db = lsm.DB(
    path, write_buffer_size=64 << 20, max_file_size=16 << 10, block_size=512,
    block_restart_interval=rng.choice((1, 3, 16)), compression=compression,
    level0_compact_files=1000, level0_slow_files=1000, level0_stop_files=1000,
    level_size_base="1 GiB", max_background_jobs=1,
    **({"bloom_filter_bits": 10} if policy == "leveldb, per block" else
       {"filter_policy": policies.create("blocked"), "filter_layout": "partitioned",
        "filter_partition_blocks": rng.choice((1, 5, 128))} if policy == "partitioned" else
       {"filter_policy": policies.create(policy)}),
)
assert lsm.KERNEL == db.stats().kernel
snapshots = []
for _ in range(int(operations)):
    what = rng.randrange(12)
    key = b"key%04d" % rng.randrange(2000)
    if what < 4:
        db.put(key, rng.randbytes(rng.randrange(60)) * rng.randrange(4))
    elif what == 4:
        db.delete(key)
    elif what == 5:
        snapshots = [*snapshots[-2:], db.snapshot()]
    elif what == 6 and rng.randrange(8) == 0:
        db.flush()
    elif what == 7 and rng.randrange(20) == 0:
        low, high = sorted((key, b"key%04d" % rng.randrange(2000)))
        db.compact_range(start=low, stop=rng.choice((None, high)))
    else:
        with db.prefixed_db(b"p" * rng.randrange(40)).write_batch() as batch:
            for _ in range(rng.randrange(200)):
                batch.put(b"%05d" % rng.randrange(9999), bytes(rng.randrange(100)))
                batch.delete(b"%05d" % rng.randrange(9999))
del snapshots
db.compact_range()
db.put(b"left in the log", b"")
db.close()
"""


def digests(path: Path) -> dict[str, str]:
    files = (each for each in path.iterdir() if each.suffix != ".lock" and each.name != "LOCK")
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize(
    "policy", ["blocked", "leveldb, per block", "partitioned", "binary-fuse", "none"]
)
def test_both_kernels_leave_the_same_files(
    tmp_path: Path, test_seed: int, compression: str, policy: str
) -> None:
    lsm.DB(tmp_path / "python", create_if_missing=True).close()
    shutil.copytree(tmp_path / "python", tmp_path / "native")  # with the seed of its filters
    operations = by_effort(300, 1500, 10_000)
    found = {}
    for kernel in ("python", "native"):
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / kernel), str(test_seed), compression,
             policy, str(operations)],
            env={**os.environ, "LSM_KERNEL": kernel, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
        )  # fmt: skip
        found[kernel] = digests(tmp_path / kernel)
    assert sum(name.endswith(".ldb") for name in found["python"]) > 3
    assert found["python"] == found["native"]
