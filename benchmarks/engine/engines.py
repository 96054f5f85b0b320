"""The engines that take part: ours under two kinds of filters, and its peers."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.engine.engine import Engine
from benchmarks.engine.ours import BLOCKED, OURS, Ours
from benchmarks.engine.peer_lmdb import LMDB
from benchmarks.engine.peer_plyvel import Plyvel
from benchmarks.engine.peer_rocksdict import Rocksdict
from benchmarks.errors import UnavailableError

PLYVEL, ROCKSDICT = Plyvel.name, Rocksdict.name
ALL = (*OURS, PLYVEL, ROCKSDICT, LMDB.name)
WITH_A_LOG = (*OURS, PLYVEL, ROCKSDICT)
# Of ours only one, where filters make no difference.
ONE_OF_OURS = (BLOCKED, PLYVEL, ROCKSDICT, LMDB.name)
THAT_MERGE = (BLOCKED, PLYVEL, ROCKSDICT)
# rocksdict writes what is in memory to a table when it closes, so that nothing is to be replayed.
THAT_REPLAY = (BLOCKED, PLYVEL)

_PEERS: tuple[Callable[[], Engine], ...] = (Plyvel, Rocksdict, LMDB)


def all_engines() -> tuple[dict[str, Engine], dict[str, str]]:
    """The engines that can take part, and why others cannot; by name, in the order of ALL."""
    engines: dict[str, Engine] = {name: Ours(name) for name in OURS}
    missing: dict[str, str] = {}
    for name, make in zip(ALL[len(OURS) :], _PEERS, strict=True):
        try:
            engines[name] = make()
        except UnavailableError as error:
            missing[name] = str(error)
    return engines, missing


def engine(name: str) -> Engine:
    """One of them; UnavailableError where it is missing."""
    engines, missing = all_engines()
    if name in missing:
        raise UnavailableError(missing[name])
    return engines[name]
