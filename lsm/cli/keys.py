"""Keys and values as text: how bytes are written on a command line, and how they are shown.

``text`` is UTF-8. What is none is shown with ``\\xNN`` for a byte, and a backslash as ``\\\\``, so
that no two keys look alike; ``escaped`` reads what is shown so.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from typing import Literal, TypeAlias

import click

Form: TypeAlias = Literal["text", "escaped", "hex", "base64"]
FORMS: tuple[Form, ...] = ("text", "escaped", "hex", "base64")

_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|([\\ntr])|)")
_NAMED = {b"\\": b"\\", b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_SHOWN = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def parse(given: str, form: Form) -> bytes:
    """The bytes that a word of the command line means; click.BadParameter where it means none."""
    if form == "text":
        return os.fsencode(given)
    try:
        if form == "escaped":
            return _ESCAPE.sub(_unescaped, os.fsencode(given))
        if form == "hex":
            return bytes.fromhex(given)
        return base64.b64decode(given.encode("ascii"), validate=True)
    except (ValueError, binascii.Error) as error:
        raise click.BadParameter(f"{given!r:.80} is not {form}: {error}") from error


def show(data: bytes, form: Form) -> str:
    """The bytes on one line, in printable characters, unlike those of any other bytes."""
    if form == "hex":
        return data.hex()
    if form == "base64":
        return base64.b64encode(data).decode("ascii")
    text = data.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character in _SHOWN:
        return _SHOWN[character]
    if character.isprintable():
        return character
    data = character.encode("utf-8", "surrogateescape")
    return "".join(f"\\x{byte:02x}" for byte in data)


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return bytes.fromhex(match[1].decode())
    if match[2] is not None:
        return _NAMED[match[2]]
    raise ValueError("a backslash is followed by one of x41 (two hex digits), n, t, r and \\")
