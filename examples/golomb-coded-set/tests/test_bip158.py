"""The ten filters that BIP 158 publishes, and the headers that chain them, to the byte.

``bip158_testnet19.json`` holds what a filter follows from: the output scripts of ten blocks of
Bitcoin's test network, and the scripts of the outputs that they spend. They are taken from
``bip-0158/testnet-19.json`` in github.com/bitcoin/bips at aa353e3e66389db45bd5962bbc694e0c3acbeb52,
where whole blocks stand, and which is in the public domain (CC0). All is in the order of that file;
hashes are the wrong way round, as Bitcoin writes them.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from golomb_coded_set import BIP158, GolombCodedSet, SipKey, encode
from golomb_coded_set.siphash import siphash

FILE = Path(__file__).with_name("bip158_testnet19.json")
SHA256 = "b5d5dfe443b28b2031c5defa51cc9d2a6544a690f57c8b0dbfc663771959f3d1"
BLOCKS: list[dict[str, Any]] = json.loads(FILE.read_text())
OP_RETURN = 0x6A
block = pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"height {block['height']}")


def test_the_data_are_those_that_were_published() -> None:
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == SHA256
    assert len(BLOCKS) == 10
    assert BIP158.p == 19
    assert BIP158.m == 784_931


def backwards(text: str) -> bytes:
    return bytes.fromhex(text)[::-1]


def sha256d(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def scripts(block: dict[str, Any]) -> list[bytes]:
    """What a basic filter holds: all scripts but empty ones and outputs nobody can spend."""
    outputs = [bytes.fromhex(each) for each in block["outputs"]]
    spent = [bytes.fromhex(each) for each in block["spent"]]
    return [each for each in outputs if each and each[0] != OP_RETURN] + [*filter(None, spent)]


def key(block: dict[str, Any]) -> SipKey:
    return SipKey(backwards(block["block_hash"])[:16])


@block
def test_the_bytes_are_those_of_bip_158(block: dict[str, Any]) -> None:
    written = encode(scripts(block), key(block))
    assert written.hex() == block["filter"]
    header = sha256d(sha256d(written) + backwards(block["previous_header"]))
    assert header[::-1].hex() == block["header"]


@block
def test_what_others_wrote_is_read(block: dict[str, Any]) -> None:
    opened = GolombCodedSet.from_bytes(bytes.fromhex(block["filter"]), key(block))
    assert opened.num_keys == len(set(scripts(block)))
    assert all(opened.might_contain_many(scripts(block)))
    assert not opened.might_contain(b"\x00\x14" + b"nobody was ever paid")


@pytest.mark.parametrize(
    ("length", "hash"),
    [
        (0, 0x726FDB47DD0E0E31),
        (1, 0x74F839C593DC67FD),
        (8, 0x93F5F5799A932462),
        (15, 0xA129CA6149BE45E5),
    ],
)
def test_siphash_is_that_of_its_authors(length: int, hash: int) -> None:
    """From the paper's appendix and the vectors beside the reference implementation."""
    assert siphash(SipKey(bytes(range(16))), bytes(range(length))) == hash
