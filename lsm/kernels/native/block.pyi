from collections.abc import Callable, Iterator
from typing import Any, final

from lsm.disk.keys import Entry
from lsm.kernels.python.table import Table

PIECE_BYTES: int
PIECE_KEY_BYTES: int

@final
class Block:
    data: bytes
    owner: Callable[[], Table | None] | None
    number: int
    used: bool
    held: bool | None
    charge: int
    place: str

    def __init__(
        self, data: bytes, wrap: Callable[[bytes], Any] | None = None, place: str = ...
    ): ...
    def evict(self) -> None: ...
    def find(self, key: bytes, rank: int) -> Entry | None: ...
    def pieces(self) -> Iterator[list[Entry]]: ...
    def pieces_backwards(self) -> Iterator[list[Entry]]: ...
    def pieces_from(self, key: bytes) -> Iterator[list[Entry]]: ...
    def pieces_through(self, key: bytes) -> Iterator[list[Entry]]: ...
