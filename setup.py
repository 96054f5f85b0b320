"""Compile the native kernels where that is possible; everything else is in ``pyproject.toml``.

Without a C compiler the installation succeeds, the package runs on its readable kernels, and
``filters.KERNEL_REASON`` repeats what went wrong here. ``LSM_REQUIRE_NATIVE=1`` makes a failed
compile an error. ``LSM_CFLAGS`` is added to the arguments of compiler and linker, as sanitizers
need it.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# The engine's kernel is compiled against the headers of the filters', one floor down.
NATIVE = Path("filters/kernels/native")
ENGINE = Path("lsm/kernels/native")
NOTE = "why_not.py"

# One positional argument and no binding make a method as cheap to call as a built-in one; the
# arithmetic is C's, checked where it matters.
DIRECTIVES = {
    "language_level": 3,
    "binding": False,
    "always_allow_keywords": False,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "freethreading_compatible": True,
    # What inspect.signature() reads of built-in methods stands in their docstrings, at no cost.
    "embedsignature": True,
    "embedsignature.format": "clinic",
}


def requires_native() -> bool:
    """Whether an installation without the native kernel is none."""
    return os.environ.get("LSM_REQUIRE_NATIVE", "") not in ("", "0")


def flags() -> tuple[list[str], list[str]]:
    """What the compiler and the linker are told."""
    extra = os.environ.get("LSM_CFLAGS", "").split()
    if sys.platform == "win32":
        return ["/O2", *extra], extra
    # Cython tells unused helpers and signs apart no better than this.
    quiet = ["-Wno-unused-function", "-Wno-sign-compare", "-Wno-unreachable-code"]
    return ["-O3", "-g0", "-fno-math-errno", *quiet, *extra], extra


def extensions() -> list[Extension]:
    """One extension for every ``.pyx`` file of the native kernels."""
    compile_args, link_args = flags()
    headers = sources("*.h", "*.pxd")
    return [
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(path)],
            depends=headers,
            include_dirs=[str(NATIVE), str(ENGINE)],
            extra_compile_args=compile_args,
            extra_link_args=link_args,
        )
        for path in map(Path, sources("*.pyx"))
    ]


def sources(*patterns: str) -> list[str]:
    """The files of both kernels that match."""
    found = (path for folder in (NATIVE, ENGINE) for each in patterns for path in folder.glob(each))
    return sorted(map(str, found))


def in_words(error: Exception) -> str:
    """The error's first line; of a failed command only its name and how it ended."""
    first = (str(error).splitlines() or [type(error).__name__])[0]
    command = re.match(r"[Cc]ommand '?\['([^']+)'.*\]'? (.*)", first)
    return " ".join(command.groups()) if command else first


class BuildNative(build_ext):
    """Compiles all modules or none, and leaves a note for the run time where it was none."""

    def finalize_options(self) -> None:
        """Hand the sources to Cython, which may be missing where build isolation is off."""
        try:
            from Cython.Build import cythonize
        except ImportError:
            if requires_native():
                raise
        else:
            self.distribution.ext_modules = cythonize(
                extensions(), compiler_directives=DIRECTIVES, build_dir="build/cython"
            )
        super().finalize_options()

    def run(self) -> None:
        """Compile; where that fails, say so now and whenever somebody asks."""
        note = self.root / NATIVE / NOTE
        note.unlink(missing_ok=True)
        try:
            self.parallel = self.parallel or os.cpu_count()
            super().run()
        except Exception as error:
            if requires_native():
                raise
            for extension in self.extensions:  # half a kernel is none
                module = self.root / self.get_ext_filename(extension.name)
                module.unlink(missing_ok=True)
            why = f"it could not be compiled when this was installed: {in_words(error)}"
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(f'"""Left by setup.py."""\n\nWHY_NOT = {why!r}\n')
            self.warn(f"the native kernel is left out: {why}. LSM_REQUIRE_NATIVE=1 insists on it.")

    @property
    def root(self) -> Path:
        """Where the packages are that the modules go to."""
        return Path() if self.inplace or self.editable_mode else Path(self.build_lib)

    def get_source_files(self) -> list[str]:
        """What a source distribution needs to compile."""
        return sources("*.pyx", "*.pxd", "*.h", "*.pyi")


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildNative})
