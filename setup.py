"""Compile the native kernel where that is possible; everything else is in ``pyproject.toml``.

Without a C compiler the installation succeeds, the package runs on its readable kernel, and
``filters.KERNEL_REASON`` repeats what went wrong here. ``LSM_REQUIRE_NATIVE=1`` makes a failed
compile an error; ``LSM_PURE=1`` compiles nothing. ``LSM_CFLAGS`` is added to the compiler's
arguments, and to the linker's, as sanitizers need it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("filters/kernels/native")
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
}


def flag(name: str) -> bool:
    """Whether an environment variable is set to something other than nothing and 0."""
    return os.environ.get(name, "") not in ("", "0")


def flags() -> tuple[list[str], list[str]]:
    """What the compiler and the linker are told."""
    extra = os.environ.get("LSM_CFLAGS", "").split()
    if sys.platform == "win32":
        return ["/O2", *extra], extra
    return ["-O3", "-fno-math-errno", "-Wno-unreachable-code", *extra], extra


def extensions() -> list[Extension]:
    """One extension for every ``.pyx`` file of the native kernel."""
    compile_args, link_args = flags()
    headers = [str(path) for path in sorted([*NATIVE.glob("*.h"), *NATIVE.glob("*.pxd")])]
    return [
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(path)],
            depends=headers,
            include_dirs=[str(NATIVE)],
            extra_compile_args=compile_args,
            extra_link_args=link_args,
        )
        for path in sorted(NATIVE.glob("*.pyx"))
    ]


class BuildNative(build_ext):
    """Compiles all modules or none, and leaves a note for the run time where it was none."""

    def run(self) -> None:
        """Compile; where that fails, say so now and whenever somebody asks."""
        self.note(None)
        if flag("LSM_PURE"):
            self.note("it was not compiled: LSM_PURE was set when this was installed")
            return
        try:
            self.parallel = self.parallel or os.cpu_count()
            super().run()
        except Exception as error:
            if flag("LSM_REQUIRE_NATIVE"):
                raise
            self.remove_outputs()
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            why = f"it could not be compiled when this was installed: {first_line}"
            self.note(why)
            self.warn(f"the native kernel is left out, {why}. LSM_REQUIRE_NATIVE=1 insists on it.")

    def finalize_options(self) -> None:
        """Hand the sources to Cython, which may be missing where build isolation is off."""
        if not flag("LSM_PURE"):
            self.distribution.ext_modules = self.cythonized()
        super().finalize_options()

    def cythonized(self) -> list[Extension]:
        """The extensions with C sources, or with none where there is no Cython."""
        try:
            from Cython.Build import cythonize
        except ImportError:
            if flag("LSM_REQUIRE_NATIVE"):
                raise
            return extensions()
        compiled: list[Extension] = cythonize(
            extensions(), compiler_directives=DIRECTIVES, build_dir="build/cython"
        )
        return compiled

    def get_source_files(self) -> list[str]:
        """What a source distribution needs to compile."""
        patterns = ("*.pyx", "*.pxd", "*.h", "*.pyi")
        return [str(path) for pattern in patterns for path in sorted(NATIVE.glob(pattern))]

    def note(self, why: str | None) -> None:
        """Write the reason beside where the modules would be; remove an older one."""
        folder = NATIVE if self.inplace or self.editable_mode else Path(self.build_lib) / NATIVE
        path = folder / NOTE
        if why is None:
            path.unlink(missing_ok=True)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            text = f'"""Left by setup.py."""\n\nWHY_NOT = {why!r}\n'
            path.write_text(text)

    def remove_outputs(self) -> None:
        """Half a kernel is none."""
        for output in self.get_outputs():
            Path(output).unlink(missing_ok=True)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildNative})
