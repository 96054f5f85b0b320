"""What a manifest tells of tables that were, and of those that replaced them."""

from __future__ import annotations

import attrs

from lsm.disk.edit import Edit, NewFile
from lsm.disk.keys import MAX_SEQUENCE


@attrs.define
class Past:
    """What one manifest says, up to its first damaged record."""

    live: dict[int, NewFile] = attrs.field(factory=dict)
    heirs: dict[int, list[int]] = attrs.field(factory=dict)
    """The tables that replaced one, by its number, in the order in which that happened."""
    last_sequence: int = 0
    log_number: int | None = None
    previous_log_number: int | None = None

    def add(self, edit: Edit) -> None:
        """Take in one record."""
        added = [new.number for new in edit.added]
        for _, number in edit.deleted:
            self.live.pop(number, None)
            self.heirs[number] = added
        for new in edit.added:
            self.live[new.number] = new
            self.heirs.pop(new.number, None)  # it has only moved
        self.last_sequence = max(self.last_sequence, min(edit.last_sequence or 0, MAX_SEQUENCE))
        if edit.log_number is not None:
            self.log_number = edit.log_number
        if edit.previous_log_number is not None:
            self.previous_log_number = edit.previous_log_number

    def outlived(self, whole: set[int]) -> set[int]:
        """The tables whose heirs are all whole, or have such heirs themselves."""
        outlived: set[int] = set()
        for number in reversed(self.heirs):
            if all(heir in whole or heir in outlived for heir in self.heirs[number]):
                outlived.add(number)
        return outlived

    def has_in_tables(self, log: int, whole: set[int]) -> bool:
        """Whether all that this log holds is in tables, and these are whole."""
        if self.log_number is None or log >= self.log_number or log == self.previous_log_number:
            return False
        return whole.issuperset(self.live)
