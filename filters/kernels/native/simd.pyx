"""Which vector instructions are in use: the best this processor has, unless others are chosen.

``LSM_SIMD`` chooses at the start, :func:`use` at any time for filters made from then on. Answers
never depend on it.
"""

import os


cdef extern from "simd.h":
    int lsm_best_simd()


# In the order of enum lsm_simd.
cdef tuple LEVELS = ("portable", "avx2", "avx512")
cdef int _best = lsm_best_simd()
cdef int _level = _best


cdef int level() noexcept nogil:
    """The index into a family's table of functions."""
    return _level


def available():
    """What can run here, from the slowest to the fastest."""
    return LEVELS[:_best + 1]


def in_use():
    """What filters made from now on are probed with."""
    return LEVELS[_level]


def use(name):
    """Probe filters made from now on with these instructions; "auto" is the best there are."""
    global _level
    if name == "auto":
        _level = _best
    elif name in available():
        _level = LEVELS.index(name)
    else:
        raise ValueError(
            f"vector instructions {name!r} cannot be used here: choose auto, {', '.join(available())}"
        )


try:
    use(os.environ.get("LSM_SIMD") or "auto")
except ValueError as error:
    raise ImportError(f"LSM_SIMD: {error}") from None
