"""Who a subject is: its family, the colour and the mark it has in every chart, its short name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from benchmarks.report.svg import SHAPES
from benchmarks.subjects import LIVE
from filters.families import every

# How many colours the style sheet has for families; past them they begin anew, with other marks.
PALETTE = 16
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
# Engines take colours of families, or that of peers: no chart shows them together.
ENGINES = {
    "lsm, blocked": "blocked",
    "lsm, leveldb": "leveldb",
    "plyvel": PEERS[0],
    "rocksdict": "classic",
    "lmdb": "cuckoo",
    "lsm, plug-in": "counting",
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
        return colour(ENGINES[name])
    if not name:
        return "f-plain"
    place = _place(name)
    return "f-other" if place is None else f"f-{place % PALETTE + 1}"


def mark_of(name: str) -> str:
    """The shape that stands for a family; peers' are hollow, ours full."""
    place = _place(name)
    if place is not None:
        # A look that is there already never comes again, nor do alike colours in one shape.
        turn = place // len(SHAPES) + (name not in every())
        return SHAPES[(place + turn) % len(SHAPES)]
    for group in (PEERS, BASELINES, tuple(ENGINES)):
        if name in group:
            return SHAPES[group.index(name) % len(SHAPES)]
    return "hexagon"


def order(name: str) -> tuple[int, int, str]:
    """Ours first, then engines, plug-ins and others, each as they are listed here."""
    place = _place(name)
    if place is not None:
        return 0, place, name
    for start, group in ((1, tuple(ENGINES)), (3, PEERS), (4, BASELINES)):
        if name in group:
            return start, group.index(name), ""
    return 2, 0, name


def _place(name: str) -> int | None:
    """Where a family of ours stands among all of them, also as programs have it."""
    stem = name.removesuffix(LIVE)
    return list(every()).index(stem) if stem in every() else None


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
