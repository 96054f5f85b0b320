"""What machine this is, what is installed on it, and how busy it is."""

from __future__ import annotations

import os
import platform
import re
from importlib import import_module, metadata
from pathlib import Path

import lsm
from benchmarks.timing import processors

PEERS = (
    "abloom",
    "fastbloom-rs",
    "lmdb",
    "plyvel",
    "pybloomfiltermmap3",
    "pyfusefilter",
    "pyprobables",
    "rbloom",
    "rocksdict",
)
LIBRARIES = (*PEERS, "attrs", "cramjam", "crc32c", "sortedcontainers", "xxhash")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def describe() -> dict[str, object]:
    """The machine, for the record."""
    allowed = processors()
    return {
        "processor": processor(),
        "processors": os.cpu_count(),
        "processors_allowed": len(allowed) or os.cpu_count(),
        "pinned_to": allowed[-1] if allowed else None,
        "system": platform.platform(),
        "architecture": platform.machine(),
        "memory_bytes": memory_bytes(),
        "cache_bytes": cache_bytes(),
        "huge_pages": huge_page_setting(),
        "load_average": load_average(),
    }


def versions() -> dict[str, str | None]:
    """The versions of all that takes part; None for what is not installed."""
    found: dict[str, str | None] = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python_compiler": platform.python_compiler(),
        "lsm-filters": lsm.__version__,
    }
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    try:
        found["leveldb"] = import_module("plyvel").__leveldb_version__
    except ImportError:
        found["leveldb"] = None
    return found


def processor() -> str:
    """The processor's model, as the system names it."""
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cache_bytes() -> dict[str, int]:
    """The sizes of the data caches of one processor, by level, where Linux tells."""
    found = {}
    for cache in sorted(CACHES.glob("index*")):
        size = re.fullmatch(r"(\d+)([KM]?)", _read(str(cache / "size")).strip())
        if size and _read(str(cache / "type")).strip() != "Instruction":
            unit = {"": 1, "K": 1 << 10, "M": 1 << 20}[size[2]]
            found["L" + _read(str(cache / "level")).strip()] = int(size[1]) * unit
    return found


def load_average() -> list[float] | None:
    """How many wanted to run in the last 1, 5 and 15 minutes."""
    return [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None


def memory_bytes() -> int | None:
    """How much memory there is."""
    names = os.sysconf_names if hasattr(os, "sysconf_names") else {}
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def huge_page_setting() -> str | None:
    """Linux's setting for transparent huge pages: always, madvise or never."""
    setting = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.partition("[")[2].partition("]")[0] or None


def huge_page_bytes() -> int | None:
    """How much of this process's memory lies in huge pages now, where Linux tells."""
    for line in _read("/proc/self/smaps_rollup").splitlines():
        if line.startswith("AnonHugePages:"):
            return int(line.split()[1]) << 10
    return None


class HugePages:
    """Tells how much memory in huge pages has come since it was made."""

    def __init__(self) -> None:
        self._before = huge_page_bytes()

    def taken(self) -> str:
        """How much has come, in words."""
        now = huge_page_bytes()
        if now is None or self._before is None:
            return "huge pages unknown"
        return f"{max(0, now - self._before) >> 20} MiB in huge pages"


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
