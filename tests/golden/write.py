"""Write the golden files of filters or of the engine: ``python -m tests.golden.write filters``.

What is once written stays: a file that exists is never written again, because it stands for the
files that users have on their disks. Both kernels read these files, and write a filter's again to
the byte. A block's salt is drawn when it is written, so of some families there is a second one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import policies
from filters import kernels
from filters.families import every
from tests.filters.cases import class_of

HERE = Path(__file__).parent
FILES, MANIFEST = HERE / "filters", HERE / "filters.json"
SEED, SALT = 0x5EED_5EED_5EED_5EED, 0x5A17_5A17_5A17_5A17

PRESENT = [b"golden-%d" % i for i in range(150)] + [b"", b"\xff" * 300]
ABSENT = [b"absent-%d" % i for i in range(2000)]

KNOWN: dict[str, Any] = json.loads(MANIFEST.read_text())


def size_of(family: str) -> dict[str, Any]:
    """What a family's files are sized by: as they were written, or the default until they are."""
    if family in KNOWN:
        return dict(KNOWN[family]["size"])
    default = every()[family].parameters.default
    return {default.name: default.value}


def build(kernel: ModuleType, family: str) -> Any:
    """The filter whose bytes are kept."""
    secrets = {"seed": SEED, "salt": SALT} if every()[family].is_salted else {}
    return class_of(kernel, family).build(PRESENT, **size_of(family), **secrets)


def answers(reader: Any) -> str:
    """The answers for the absent keys, as hexadecimal bits."""
    bits = "".join(str(int(each)) for each in reader.might_contain_many(ABSENT))
    return f"{int(bits, 2):0{len(bits) // 4}x}"


def record(family: str) -> dict[str, Any]:
    """Write one family's filter, and block if it has any; what is to be remembered about them."""
    FILES.mkdir(exist_ok=True)
    size = size_of(family)
    built = build(kernels.load("python"), family)
    (FILES / f"{family}.filter").write_bytes(built.to_bytes())
    blocks = {}
    if every()[family].policy:
        policy = policies.create(family, **size).with_seed(SEED)
        payload = policy.create_filter(PRESENT)
        assert payload is not None
        block = policies.encode_block(policy, payload, num_keys=len(PRESENT))
        (FILES / f"{family}.block").write_bytes(block)
        blocks[f"{family}.block"] = answers(policies.open_block(block))
    return {"size": size, "filter": answers(built), "blocks": blocks}


def main() -> None:
    """Write what is missing of the filters, or of the engine."""
    [what] = sys.argv[1:]
    if what == "engine":
        from tests.golden import write_engine  # which needs all that the engine does

        write_engine.main()
        return
    if what != "filters":
        raise SystemExit(f"there are golden files of filters and of the engine, none of {what}")
    for family in every():
        if family not in KNOWN:
            KNOWN[family] = record(family)
            print(f"wrote the golden files of {family}")
    MANIFEST.write_text(json.dumps(KNOWN, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
