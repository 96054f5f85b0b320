"""Write the golden files of a kernel, or of the engine: ``python -m tests.golden.write python``.

What is once written stays: a file that exists is never written again, because it stands for the
files that users have on their disks.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import policies
from filters.families import FAMILIES

HERE = Path(__file__).parent
SEED, SALT = 0x5EED_5EED_5EED_5EED, 0x5A17_5A17_5A17_5A17

PRESENT = [b"golden-%d" % i for i in range(150)] + [b"", b"\xff" * 300]
ABSENT = [b"absent-%d" % i for i in range(2000)]

SIZING_PARAMETERS: dict[str, dict[str, Any]] = {
    "classic": {"bits_per_key": 10},
    "counting": {"counters_per_key": 10},
    "cuckoo": {"fingerprint_bits": 13},
    "blocked": {"bits_per_key": 10},
    "leveldb": {"bits_per_key": 10},
    "rocksdb": {"bits_per_key": 10},
    "binary-fuse": {"fingerprint_bits": 8},
    "ribbon": {"bits_per_key": 8},
    "scalable": {"fpr": 0.01},
    "xor": {"fingerprint_bits": 8},
    "cassandra": {"fp_chance": 0.01},
    "bumped-ribbon": {"fpr": 0.0123},
}


def build(kernel: str, family: str) -> Any:
    """The filter whose bytes are kept."""
    cls = FAMILIES[family].filter_class(kernel)
    secrets = {"seed": SEED, "salt": SALT} if FAMILIES[family].is_salted else {}
    return cls.build(PRESENT, **SIZING_PARAMETERS[family], **secrets)


def answers(reader: Any) -> str:
    """The answers for the absent keys, as hexadecimal bits."""
    bits = "".join(str(int(each)) for each in reader.might_contain_many(ABSENT))
    return f"{int(bits, 2):0{len(bits) // 4}x}"


def record(kernel: str, family: str) -> dict[str, Any]:
    """Write one family's filter, and block if it has any; what is to be remembered about them."""
    folder = HERE / kernel
    folder.mkdir(exist_ok=True)
    built = build(kernel, family)
    (folder / f"{family}.filter").write_bytes(built.to_bytes())
    remembered = {"size": SIZING_PARAMETERS[family], "filter": answers(built)}
    if not FAMILIES[family].policy:
        return remembered
    policy = policies.create(family, **SIZING_PARAMETERS[family]).with_seed(SEED)
    payload = policy.create_filter(PRESENT)
    assert payload is not None
    block = policies.encode_block(policy, payload, num_keys=len(PRESENT))
    (folder / f"{family}.block").write_bytes(block)
    return {**remembered, "block": answers(policies.open_block(block))}


def main() -> None:
    """Write what is missing for the named kernel, or for ``engine``."""
    [kernel] = sys.argv[1:]
    if kernel == "engine":
        from tests.golden import write_engine  # which needs all that the engine does

        write_engine.main()
        return
    manifest = HERE / f"{kernel}.json"
    known = json.loads(manifest.read_text()) if manifest.exists() else {}
    for family in SIZING_PARAMETERS:
        if family not in known:
            known[family] = record(kernel, family)
            print(f"wrote {kernel}/{family}")
    manifest.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
