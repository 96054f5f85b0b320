"""Thrift's compact protocol, read field by field: as much of it as Parquet's metadata takes.

Whoever reads a struct asks for its fields one after the other, and reads or skips the value of
each. What is read is no longer than what is left, and nests no deeper than metadata does.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from lsm.disk.coding import Fields

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)

_STOP = 0
_LAST_FIELD = (1 << 15) - 1
_DEEPEST = 16
_LONG_LIST = 15  # this many elements, or more: their number follows
_WIDTHS = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8, UUID: 16}


@attrs.frozen
class Field:
    """A field of a struct: its number, the type of its value, and where it begins."""

    number: int
    type: int
    at: int


class CompactFields(Fields):
    """A cursor over the untrusted bytes of structs."""

    __slots__ = ()

    def fields(self) -> Iterator[Field]:
        """The fields of the next struct; of each the value has to be read, or skipped, before."""
        number = 0
        while True:
            at = self.at
            head = self.byte("head of a field")
            if head == _STOP:
                return
            step = head >> 4
            number = number + step if step else _unzigzag(self.varint32("number of a field"))
            if not 1 <= number <= _LAST_FIELD:
                raise self.refusal(
                    f"the field at byte {at} has the number {number}, allowed are 1 "
                    f"to {_LAST_FIELD}"
                )
            yield Field(number, head & 15, at)

    def integer(self, field: Field, type: int, what: str) -> int:
        """The value of a field that has to be a number of this width."""
        self.expect(field, type, what)
        return _unzigzag(self.varint64(what) if type == I64 else self.varint32(what))

    def refusal(self, problem: str) -> Exception:
        """The error that says where the bytes are, and what is wrong with them."""
        return self.error(f"{self._what}: {problem}")

    def expect(self, field: Field, type: int, what: str) -> None:
        """Refuse a field of another type."""
        if field.type != type:
            raise self.refusal(
                f"the {what} at byte {field.at} is of type {field.type} where type "
                f"{type} is expected"
            )

    def elements(self, field: Field, type: int, what: str) -> Iterator[int]:
        """The numbers of a list's elements; of each the value has to be read before the next."""
        self.expect(field, LIST, what)
        found, count = self._list_head(what)
        if count and found != type:
            raise self.refusal(
                f"the {what} at byte {field.at} are of type {found} where type {type} is expected"
            )
        yield from range(count)

    def skip(self, field: Field, depth: int = 0) -> None:
        """Pass over the value of a field."""
        if field.type not in (TRUE, FALSE):  # which have no value but their type
            self._skip_value(field.type, depth)

    def _skip_value(self, type: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise self.refusal(f"values nest deeper than {_DEEPEST} from byte {self.at} on")
        if type in (I16, I32, I64):
            self.varint64("number")
        elif type == BINARY:
            self.view(self.varint32("length of a string"), "string")
        elif type in (LIST, SET):
            element, count = self._list_head("list")
            self._skip_elements((element,), count, depth)
        elif type == MAP:
            self._skip_map(depth)
        elif type == STRUCT:
            for field in self.fields():
                self.skip(field, depth + 1)
        elif type in _WIDTHS:
            self.view(_WIDTHS[type], "value")
        else:
            raise self.refusal(f"a value of type {type} before byte {self.at}, which there is not")

    def _skip_map(self, depth: int) -> None:
        count = self.varint32("size of a map")
        if count:
            types = self.byte("types of a map")
            self._check_count(2 * count, "map")
            self._skip_elements((types >> 4, types & 15), count, depth)

    def _skip_elements(self, types: tuple[int, ...], count: int, depth: int) -> None:
        for _ in range(count):
            for type in types:
                self._skip_value(type, depth + 1)

    def _list_head(self, what: str) -> tuple[int, int]:
        head = self.byte(f"head of the {what}")
        count = head >> 4
        if count == _LONG_LIST:
            count = self.varint32(f"number of the {what}")
        self._check_count(count, what)
        return head & 15, count

    def _check_count(self, count: int, what: str) -> None:
        """Each element takes a byte at least."""
        if count > self.remaining:
            raise self.refusal(
                f"the {what} before byte {self.at} would be {count}, in {self.remaining} bytes"
            )


def _unzigzag(value: int) -> int:
    return value >> 1 ^ -(value & 1)
