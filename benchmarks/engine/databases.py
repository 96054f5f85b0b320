"""The engines that take part with so many keys, and the databases that they have meanwhile.

An engine that fails, or is wrong once, takes no part from then on. The garbage collector goes over
what an engine has made since its turn began, and neither over keys nor over other databases.
"""

from __future__ import annotations

import gc
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from benchmarks.engine.data import Data
from benchmarks.engine.engine import Engine
from benchmarks.engine.engines import ALL, ONE_OF_OURS, all_engines
from benchmarks.engine.ours import PLUG_IN, Ours
from benchmarks.engine.settings import Scale
from benchmarks.engine.steps import Step
from benchmarks.errors import UnavailableError, WrongAnswersError


class Databases:
    """All engines with so many keys, and their databases, in a directory that goes with them."""

    def __init__(self, scale: Scale, directory: Path):
        self.scale = scale
        engines, self.missing = all_engines()
        taking_part = ONE_OF_OURS if scale.large else ALL
        self.engines = {name: engines[name] for name in taking_part if name in engines}
        self.engines[PLUG_IN] = Ours(PLUG_IN)
        self.failed: dict[str, str] = {}
        self._root = directory
        self._root.mkdir()
        self._open: dict[Path, tuple[Engine, Any]] = {}
        self._written: dict[Path, float | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        gc.unfreeze()
        try:
            for path in list(self._open):
                with suppress(Exception):  # of the others, too, something may be left to remove
                    self.close(path)
        finally:
            shutil.rmtree(self._root)

    @Step
    def data(self) -> Data:
        """The keys and values."""
        data = Data(self.scale)
        set_aside()
        return data

    def in_turn(self, repeats: int, names: Iterable[str] = ALL) -> Iterator[tuple[int, Engine]]:
        """Each engine once in every repeat, forwards and backwards; those that can take part."""
        order = list(names)
        for repeat in range(repeats):
            for name in order:
                if name in self.engines and name not in self.failed:
                    set_aside()
                    yield repeat, self.engines[name]
            order.reverse()

    @contextmanager
    def attempt(self, engine: Engine) -> Iterator[None]:
        """What an engine does wrong is noted, and costs the others nothing."""
        try:
            yield
        except UnavailableError:
            raise
        except WrongAnswersError as error:
            self.failed[engine.name] = str(error)
        except Exception as error:
            self.failed[engine.name] = f"{type(error).__name__}: {error}"

    def path(self, what: str, engine: Engine) -> Path:
        """A place for a database."""
        parent = self._root / what
        parent.mkdir(exist_ok=True)
        return parent / re.sub(r"\W+", "-", engine.name)

    def open(self, engine: Engine, path: Path, **options: Any) -> Any:
        """Open a database, which is closed at the end if not before."""
        return self._kept(engine, path, engine.open(path, **options))

    def _kept(self, engine: Engine, path: Path, db: Any) -> Any:
        self._open[path] = engine, db
        return db

    def close(self, path: Path) -> None:
        """Close a database, and count what it has written."""
        engine, db = self._open.pop(path)
        written, before = engine.close(db), self._written.get(path, 0)
        self._written[path] = None if written is None or before is None else before + written

    def remove(self, path: Path) -> None:
        """Remove a database that is closed, and forget what it has written."""
        shutil.rmtree(path)
        self._written.pop(path, None)

    def written(self, path: Path) -> float | None:
        """How many bytes have gone to the tables of a database that is closed; None: not told."""
        return self._written[path]


def set_aside() -> None:
    """Have the garbage collector leave alone what is there: it is of no database that comes."""
    gc.collect()
    gc.freeze()
