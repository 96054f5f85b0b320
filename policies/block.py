"""The self-describing block: a filter's bytes, and what a reader needs to know to open them.

All integers are little-endian::

    4  magic "LSMF"                        u64  number of keys
    u8 version                             u64  length, then the filter's own bytes
    u8 flags (bit 0: empty set)            u64  XXH3-64 of all before
    u8 length, then the policy's name
    u16 length, then its parameters in canonical JSON

Magic first and checksum last hold for every future version. A filter of no bytes can only be the
empty set's, and is read as such without its policy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import attrs
from xxhash import xxh3_64, xxh3_64_intdigest

from filters.columns import one_by_one
from filters.errors import CorruptFilterError, UnsupportedVersionError
from filters.fields import Fields
from filters.hashing import MASK64, key_bytes
from filters.header import immutable_view, stated_num_keys
from filters.sizing_parameters import checked_int
from policies import registry
from policies.builtin import BUILTIN, FamilyPolicy, is_built_in
from policies.containment import let_pass
from policies.contract import NAME, FilterPolicy, FilterReader
from policies.errors import CorruptBlockError, PluginError, cause, plugin_error, words
from policies.parameters import parameter_names

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.hashing import Key
    from filters.kernels.python.base import Filter

MAGIC = b"LSMF"
VERSION = 1
EMPTY = 0b1

DEEPEST = 64
"""How far parameters may nest: far more than people write, far less than a stack has room for."""

_TOKENS = re.compile(r'\\.?|["\[\]{}]', re.DOTALL)  # an escaped quote ends no string
_CHECKSUM_BYTES = 8
_VERSION_AT = len(MAGIC)
_LEAST_BYTES = len(MAGIC) + 1 + _CHECKSUM_BYTES


@attrs.frozen(kw_only=True)
class BlockDescription:
    """What a block says about itself. ``bits_per_key`` is None for the empty set."""

    version: int
    policy: str
    params: dict[str, Any] = attrs.field(hash=False)
    num_keys: int
    payload_bytes: int
    total_bytes: int

    @property
    def is_empty(self) -> bool:
        """Whether the filter is one of no keys."""
        return self.num_keys == 0

    @property
    def bits_per_key(self) -> float | None:
        """The filter's own bits over the number of keys, without this envelope."""
        return self.payload_bytes * 8 / self.num_keys if self.num_keys else None


class EmptyReader:
    """The filter of no keys: answers "no" to every key and for every range."""

    __slots__ = ()
    num_keys = 0

    def might_contain(self, key: Key) -> bool:
        """False for any key, and TypeError for what is none."""
        key_bytes(key)
        return False

    def might_contain_many(self, keys: Iterable[Key]) -> list[bool]:
        """False for each key."""
        return [self.might_contain(key) for key in one_by_one(keys)]

    def may_contain_range(self, low: Key | None, high: Key | None) -> bool:
        """False for any range, and TypeError for bounds that are none."""
        for bound in (low, high):
            if bound is not None:
                key_bytes(bound)
        return False


def encode_block(
    policy: FilterPolicy, filter: Buffer | Filter, num_keys: int | None = None
) -> bytes:
    """The block of a filter that this policy reads, or of its bytes.

    A filter knows how many keys it has, and bytes of our own families say it; others have to come
    with ``num_keys``. ValueError where that is another number than the filter's, or less than its
    bytes say: it may be more there, as these count a key once that was given twice.
    """
    if hasattr(filter, "to_bytes") and hasattr(filter, "num_keys"):
        view, known = immutable_view(filter.to_bytes()), filter.num_keys
        number = _agreed(known, num_keys, most=known)
    else:
        view = immutable_view(filter)
        known = stated_num_keys(view)
        number = _agreed(known, num_keys, most=None if known else known)
    return b"".join(block_parts(Identity.of(policy), view, number))


def _agreed(known: int | None, given: int | None, most: int | None) -> int:
    """The number of keys that is given, or else the one that a filter states."""
    if given is None:
        if known is None:
            raise TypeError("this filter does not say how many keys it has: give num_keys=")
        return known
    checked_int("num_keys", given, 0, MASK64)
    if given < (known or 0) or given > (MASK64 if most is None else most):
        raise ValueError(
            f"num_keys={given} contradicts the filter, which has {known} keys: leave num_keys out"
        )
    return given


def block_parts(
    identity: Identity, filter: bytes | memoryview, num_keys: int
) -> tuple[bytes, bytes | memoryview, bytes]:
    """The block of an immutable filter of so many keys: what precedes it, itself, its checksum."""
    checked_int("num_keys", num_keys, 0, MASK64)
    if num_keys and not filter:
        raise ValueError(
            f"a filter of {num_keys} keys has no bytes: only the filter of an empty set may"
        )
    label = b"".join(
        (
            MAGIC,
            bytes((VERSION, 0 if num_keys else EMPTY)),
            identity.encode(),
            num_keys.to_bytes(8, "little"),
            len(filter).to_bytes(8, "little"),
        )
    )
    checksum = xxh3_64(label)
    checksum.update(filter)
    return label, filter, checksum.intdigest().to_bytes(_CHECKSUM_BYTES, "little")


def bytes_around(name: str, params: dict[str, Any]) -> int:
    """The bytes that a block has besides the filter of a policy with these parameters."""
    identity = Identity(name, canonical_json(params).decode())
    return sum(map(len, block_parts(identity, b"", 0)))


def canonical_json(params: dict[str, Any]) -> bytes:
    """The one spelling of parameters: keys sorted, no spaces; ValueError for what JSON lacks."""
    return json.dumps(
        params, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    ).encode()


@attrs.frozen
class Identity:
    """A policy's name, and its parameters in canonical JSON."""

    name: str
    params: str

    @classmethod
    def of(cls, policy: FilterPolicy) -> Self:
        """What a policy says of itself; PluginError where a block could not hold or tell it."""
        try:
            name, params = NAME.fullmatch(policy.name), policy.params()
            if name is None:
                raise ValueError(f"the name {policy.name!r} is not allowed")
            if not isinstance(params, dict):
                raise TypeError(f"params() returned {type(params).__name__}, not a dict")
            text = canonical_json(params)
            if len(text) > 0xFFFF:
                raise ValueError(f"its parameters take {len(text)} bytes, allowed are {0xFFFF}")
            _check_nesting(text.decode())
        except BaseException as error:
            raise plugin_error(policy, "cannot be named in a block", error) from error
        return cls(name[0], text.decode())

    def decoded(self) -> dict[str, Any]:
        """The parameters as every reader of a block finds them."""
        return decode_params(self.params.encode())

    def encode(self) -> bytes:
        """The fields of a block that name the policy and its parameters."""
        name, text = self.name.encode(), self.params.encode()
        return bytes((len(name),)) + name + len(text).to_bytes(2, "little") + text


def open_block(block: Buffer) -> FilterReader:
    """A reader of the filter in a block, by the policy that the block names.

    A policy with ``takes_views`` gets a view into the block where that is immutable, any other
    policy gets ``bytes``. Raises CorruptBlockError for bytes that are no block or whose filter its
    policy finds damaged, UnsupportedVersionError for a newer format, UnknownPolicyError and
    DuplicatePolicyError for a name that does not lead to one policy, and PluginError where that
    policy fails.
    """
    return read_block(block)[1]


def load_filter(block: Buffer) -> FilterReader:
    """What :func:`open_block` gives, and of a family a filter also where there are no bytes."""
    description, reader = read_block(block)
    if isinstance(reader, EmptyReader):
        for cls in BUILTIN:
            if cls.name == description.policy and issubclass(cls, FamilyPolicy):
                return cls().build([]) or reader
    return reader


def describe_block(block: Buffer) -> BlockDescription:
    """What a block says about itself; its policy need not be known here."""
    return _parse(block)[0]


def read_block(block: Buffer, *, is_checked: bool = False) -> tuple[BlockDescription, FilterReader]:
    """What a block says about itself, and a reader of its filter, of one parse.

    ``is_checked`` says that an immutable block lies under another checksum, which the caller has
    found right just before. Neither the block's own nor that of a filter of our own is computed
    then, for they cover nothing that the other does not. All else is checked as ever.
    """
    description, payload = _parse(block, is_checked)
    if not payload:
        return description, EmptyReader()
    cls = registry.lookup(description.policy)
    reader = open_payload(description.policy, cls, description.params, payload, is_checked)
    return description, reader


def open_payload(
    name: str,
    cls: type[FilterPolicy],
    params: dict[str, Any],
    payload: memoryview,
    is_checked: bool,
) -> FilterReader:
    """A reader of the filter behind a block's label, by any instance of the class.

    ``is_checked`` says that a checksum around the payload was found right, which a policy that is
    built in then takes for the filter's own.
    """
    where = f"filter policy {name!r} ({cls.__module__}.{cls.__qualname__})"
    try:
        policy = _reading_instance(cls, params)
        if is_checked and is_built_in(policy) and isinstance(policy, FamilyPolicy):
            reader: FilterReader = policy.open_checked(payload)
        else:
            data: Any = payload if cls.takes_views else payload.tobytes()
            reader = policy.open(data)
        for method in ("might_contain", "might_contain_many"):
            if not callable(getattr(reader, method, None)):
                raise TypeError(f"its reader is a {type(reader).__name__}, which has no {method}()")
    except CorruptFilterError as error:
        raise CorruptBlockError(
            f"a block's checksum is right, its filter is not: {words(error)}"
        ) from error
    except UnsupportedVersionError as error:
        raise UnsupportedVersionError(words(error)) from error
    except BaseException as error:
        let_pass(error)
        raise PluginError(f"{where} failed to open a filter: {cause(error)}") from error
    return reader


def _reading_instance(cls: type[FilterPolicy], params: dict[str, Any]) -> FilterPolicy:
    """Any instance, for any answers for all bytes of its name.

    Without parameters where the class allows that; else with the block's, those of them that this
    release of the policy knows.
    """
    try:
        return cls()
    except BaseException as error:  # a parameter without a default, or whatever a plug-in raises
        let_pass(error)
        known = parameter_names(cls)
        return cls(**{name: params[name] for name in params if known is None or name in known})


def _parse(block: Buffer, is_checked: bool = False) -> tuple[BlockDescription, memoryview]:
    """The description and a view of the payload. Order of trust: checksum, version, structure."""
    view = immutable_view(block)
    if len(view) < _LEAST_BYTES:
        raise CorruptBlockError(
            f"filter block is cut short: {len(view)} bytes, the smallest one has {_LEAST_BYTES}"
        )
    if view[: len(MAGIC)] != MAGIC:
        raise CorruptBlockError(
            f"not a filter block: bytes 0 to 3 are {bytes(view[:4])!r}, expected {MAGIC!r}"
        )
    body, checksum = view[:-_CHECKSUM_BYTES], view[-_CHECKSUM_BYTES:]
    if not is_checked and xxh3_64_intdigest(body) != int.from_bytes(checksum, "little"):
        raise CorruptBlockError(
            f"filter block of {len(view)} bytes is damaged: its XXH3-64 checksum does not match"
        )
    if body[_VERSION_AT] != VERSION:
        raise UnsupportedVersionError(
            f"filter block has format version {body[_VERSION_AT]} (byte {_VERSION_AT}); "
            f"this release reads {VERSION}: upgrade lsm-filters"
        )
    return _parse_fields(_Fields(body, "filter block", _VERSION_AT + 1), total_bytes=len(view))


def _parse_fields(fields: _Fields, total_bytes: int) -> tuple[BlockDescription, memoryview]:
    flags = fields.number(1, "flags")
    name = _decode_name(fields.view(fields.number(1, "name length"), "name"))
    params = decode_params(fields.view(fields.number(2, "parameter length"), "parameters"))
    num_keys = fields.number(8, "number of keys")
    payload = fields.view(fields.number(8, "filter length"), "filter")
    fields.end()
    if flags != (EMPTY if num_keys == 0 else 0):
        raise CorruptBlockError(
            f"filter block has flags {flags:#04x} (byte 5) with {num_keys} keys: "
            "bit 0 says that the set is empty, the other bits are reserved"
        )
    if num_keys and not payload:
        raise CorruptBlockError(f"filter block has {num_keys} keys and a filter of no bytes")
    description = BlockDescription(
        version=VERSION,
        policy=name,
        params=params,
        num_keys=num_keys,
        payload_bytes=len(payload),
        total_bytes=total_bytes,
    )
    return description, payload


def _decode_name(name: memoryview) -> str:
    text = str(name, "ascii", "replace")
    if not NAME.fullmatch(text):
        raise CorruptBlockError(
            f"filter block names {bytes(name)!r}, which no policy can be called"
        )
    return text


def decode_params(params: Buffer) -> dict[str, Any]:
    """The parameters in a block's JSON; CorruptBlockError for what is no such object."""
    try:
        text = str(params, "utf-8")
        _check_nesting(text)
        decoded = json.loads(text, parse_constant=_refuse_constant)
        canonical_json(decoded)  # 1e999 and "\\ud800" parse, and could not be written again
    except ValueError as error:
        raise CorruptBlockError(
            f"filter block has parameters that are not JSON: {cause(error)}"
        ) from error
    if not isinstance(decoded, dict):
        raise CorruptBlockError(
            f"filter block has parameters that are a JSON {type(decoded).__name__}, not an object"
        )
    return decoded


def _check_nesting(text: str) -> None:
    """ValueError if a parser would have to go deeper than ``DEEPEST``.

    Known before it starts, so that running out of stack tells of the caller and not of the text.
    """
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth, quoted = 0, False
    for token in _TOKENS.findall(text):
        if token == '"':
            quoted = not quoted
        elif quoted or token[0] == "\\":
            continue
        else:
            depth += 1 if token in "[{" else -1
        if depth > DEEPEST:
            raise ValueError(f"arrays and objects nest deeper than {DEEPEST}")


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


class _Fields(Fields):
    """A cursor over a block's body."""

    __slots__ = ()
    error = CorruptBlockError
