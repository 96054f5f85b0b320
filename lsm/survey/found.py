"""What a survey finds: a file, and the filters in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import attrs

Checked = Literal["right", "wrong", "unknown", "none"]
"""What became of a checksum; ``unknown`` is of a kind that nobody here computes."""


@attrs.frozen(kw_only=True)
class Guard:
    """The checksum over some bytes: its ``kind``, such as ``crc32c``, and what became of it."""

    kind: str = "none"
    checked: Checked = "none"

    @property
    def is_there(self) -> bool:
        """Whether a flipped bit would be noticed by whoever looks."""
        return self.checked != "none"


@attrs.frozen(kw_only=True)
class FilterFound:
    """One filter of a file, or one partition of it.

    ``family`` is what it is called in ``filters``, None for what is not known here; ``form`` says
    in words what it is, or what is unknown of it. Numbers are None where nobody can tell.
    ``reader`` answers for keys by ``might_contain``, as the store would ask, None where it cannot;
    ``keys`` gives all keys that it was built of, of a store whose files have them.
    """

    where: str
    """What it is in the file, such as ``filter block`` or ``partition 3 of 17``."""
    offset: int
    size: int
    family: str | None
    form: str
    guard: Guard
    parameters: dict[str, Any] = attrs.field(factory=dict)
    num_keys: int | None = None
    fill: float | None = None
    _expected_fpr: float | Callable[[], float | None] | None = attrs.field(
        default=None, repr=False, eq=False
    )
    problem: str = ""
    """Why it cannot be asked, or what is wrong with it; empty where nothing is."""
    reader: Any = attrs.field(default=None, repr=False, eq=False)
    keys: Callable[[], Iterator[bytes]] | None = attrs.field(default=None, repr=False, eq=False)

    @property
    def expected_fpr(self) -> float | None:
        """The share of absent keys that its bits let through.

        Where it is handed over as a function, it is found out when it is asked for.
        """
        rate = self._expected_fpr
        return rate() if callable(rate) else rate

    @property
    def bits_per_key(self) -> float | None:
        """Its stored bits for each key."""
        return 8 * self.size / self.num_keys if self.num_keys else None


@attrs.frozen(kw_only=True)
class FileFound:
    """One file: whose it is, what it is, what it says of itself, and the filters in it.

    ``facts`` are for people, in the order in which they are to be read. What could not be read is
    among the ``problems``, each of which names the place, or is the problem of a filter.
    """

    path: str
    size: int
    store: str
    """Whose it is: ``LevelDB``, ``RocksDB``, ``Pebble``, ``Cassandra``, ``Parquet``, ``lsm``."""
    kind: str
    """What it is: ``table``, ``filter``, ``block``, ``column chunks``."""
    facts: dict[str, Any] = attrs.field(factory=dict)
    filters: Sequence[FilterFound] = ()
    """Where there may be very many, each is looked at when it is asked for, and not kept."""
    problems: tuple[str, ...] = ()
