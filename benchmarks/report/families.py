"""Who a subject is: its family, the colour and the mark it has in every chart, its short name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from benchmarks.report.svg import SHAPES

OURS = (
    "blocked",
    "classic",
    "cuckoo",
    "binary-fuse",
    "rocksdb",
    "leveldb",
    "counting",
    "counting-live",
    "scalable",
    "xor",
    "cassandra",
    "bumped-ribbon",
)
PEERS = (
    "abloom",
    "fastbloom_rs",
    "pybloomfiltermmap3",
    "pyfusefilter",
    "pyprobables",
    "pyprobables-expanding",
    "rbloom",
)
MODULES = {"pybloomfilter": "pybloomfiltermmap3", "probables": "pyprobables"}
BASELINES = ("set", "sorted array", "no filter", "none")
# Engines take colours of families, which no chart shows together with them.
ENGINES = {
    "lsm, blocked": "blocked",
    "lsm, leveldb": "leveldb",
    "plyvel": "peer",
    "rocksdict": "classic",
    "lmdb": "cuckoo",
}


def family(subject: str) -> str:
    """The policy, library or baseline that a subject is of."""
    if subject in BASELINES or subject in ENGINES:
        return subject
    word = (subject.split() or [""])[0]
    return MODULES.get(word, word)


def is_peer(name: str) -> bool:
    """Whether a family is another library, or what stands beside the filters."""
    return name in PEERS or name in BASELINES


def colour(name: str) -> str:
    """The class of the style sheet that gives a family its colour."""
    if is_peer(name):
        return "f-peer"
    if name in ENGINES:
        return f"f-{ENGINES[name]}"
    if not name:
        return "f-plain"
    return f"f-{name}" if name in OURS else "f-other"


def mark_of(name: str) -> str:
    """The shape that stands for a family; peers' are hollow, ours full."""
    for group in (OURS, PEERS, BASELINES, tuple(ENGINES)):
        if name in group:
            return SHAPES[group.index(name) % len(SHAPES)]
    return "hexagon"


def order(name: str) -> tuple[int, str]:
    """Ours first, then plug-ins, then others, each as they are listed here."""
    for start, group in ((0, OURS), (50, tuple(ENGINES)), (200, PEERS), (300, BASELINES)):
        if name in group:
            return start + group.index(name), ""
    return 100, name


def short_names(subjects: Iterable[str]) -> dict[str, str]:
    """What each is called in a chart: its family, and its size where that has several."""
    found = list(dict.fromkeys(subjects))
    several = Counter(map(family, found))
    return {
        subject: family(subject) if several[family(subject)] == 1 else _short(subject)
        for subject in found
    }


def _short(subject: str) -> str:
    return " ".join([family(subject), *map(_size, subject.split()[1:])])


def _size(word: str) -> str:
    """What a parameter is set to; rates are percents."""
    name, _, value = word.partition("=")
    try:
        return f"{100 * float(value):.3g} %" if name in ("fpr", "fp_chance") else value or name
    except ValueError:
        return value
