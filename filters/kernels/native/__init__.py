"""The compiled kernel: what ``filters/kernels/python`` does, at the speed of the machine.

Module for module and name for name its twin, held to it bit for bit. What is here in C headers is
what Cython has no word for: products of 128 bits, vector instructions, hashing without Python.
"""

from filters.families import every

try:
    from filters.kernels.native.digests import Digests

    globals().update({each.class_name: each.filter_class("native") for each in every().values()})
except ModuleNotFoundError as error:
    try:
        # What setup.py leaves behind where it could not compile.
        from filters.kernels.native.why_not import WHY_NOT
    except ModuleNotFoundError:
        WHY_NOT = "it is not compiled here: pip install does that"
    raise ImportError(WHY_NOT) from error

__all__ = ["Digests", *(each.class_name for each in every().values())]
