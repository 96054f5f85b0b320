"""What one manifest tells of its tables: which are live, and which superseded others."""

from __future__ import annotations

import attrs

from lsm.disk.edit import Edit, NewFile
from lsm.disk.keys import MAX_SEQUENCE


@attrs.define
class ManifestHistory:
    """The edits of a manifest, up to its first damaged record, as far as a repair needs them."""

    live: dict[int, NewFile] = attrs.field(factory=dict)
    replaced_by: dict[int, list[int]] = attrs.field(factory=dict)
    """The tables that replaced one, by its number, in the order in which that happened."""
    last_sequence: int = 0
    log_number: int | None = None
    previous_log_number: int | None = None
    is_whole: bool = False
    """Whether all of it was read."""

    def add(self, edit: Edit) -> None:
        """Take in the edit of the next record."""
        added = [new.number for new in edit.added]
        for _, number in edit.deleted:
            self.live.pop(number, None)
            self.replaced_by[number] = added
        for new in edit.added:
            self.live[new.number] = new
            self.replaced_by.pop(new.number, None)  # it has only moved
        self.last_sequence = max(self.last_sequence, min(edit.last_sequence or 0, MAX_SEQUENCE))
        if edit.log_number is not None:
            self.log_number = edit.log_number
        if edit.previous_log_number is not None:
            self.previous_log_number = edit.previous_log_number

    def superseded(self, whole: set[int]) -> set[int]:
        """The tables whose replacements are all whole, or superseded themselves."""
        superseded: set[int] = set()
        for number in reversed(self.replaced_by):
            if all(each in whole or each in superseded for each in self.replaced_by[number]):
                superseded.add(number)
        return superseded

    def has_never_had(self, number: int) -> bool:
        """Whether it is known that this table was never part of the database."""
        return self.is_whole and number not in self.live and number not in self.replaced_by

    def is_flushed(self, log: int, whole: set[int]) -> bool:
        """Whether all entries of this log are in tables, and these are whole."""
        if self.log_number is None or log >= self.log_number or log == self.previous_log_number:
            return False
        return whole.issuperset(self.live)
