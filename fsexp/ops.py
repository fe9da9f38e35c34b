"""The stream of operations that the core replays: its encoding, and a reader for people.

Layout (version 1, all of it little-endian): 8 bytes "FSEXPOPS", 4 bytes version, then operations: one byte, its
arguments. A number is an unsigned LEB128; a string is its length as a number, its bytes, and one NUL that the length
does not count, so that the core hands the system call the string as it lies in memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from fsexp import whole
from fsexp.errors import UserError

MAGIC = b"FSEXPOPS"
VERSION = 1

# Operation -> code and the kinds of its arguments: s string, i number. vmimages/core/ops.c has the same table.
TABLE: dict[str, tuple[int, str]] = {
    "phase": (0x01, "s"),
    "phase-end": (0x02, ""),
    "end": (0x03, ""),
    "mkdir": (0x10, "si"),
    "create": (0x11, "si"),
    "unlink": (0x12, "s"),
    "rmdir": (0x13, "s"),
    "chdir": (0x14, "s"),
    "sync": (0x15, ""),
    "fault": (0x7F, "s"),
}
_BY_CODE = {code: (name, kinds) for name, (code, kinds) in TABLE.items()}


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _string(value: str) -> bytes:
    data = os.fsencode(value)
    if b"\0" in data:
        raise ValueError(f"a path can't contain a NUL byte: {value!r}")
    return _number(len(data)) + data + b"\0"


def _op(name: str, *arguments: str | int) -> bytes:
    code, _ = TABLE[name]
    parts = [_string(a) if isinstance(a, str) else _number(a) for a in arguments]
    return bytes([code]) + b"".join(parts)


def phase(name: str) -> bytes:
    """Begin the timed phase `name`."""
    return _op("phase", name)


def phase_end() -> bytes:
    """End the timed phase."""
    return _op("phase-end")


def mkdir(path: str, mode: int) -> bytes:
    """mkdir(2)."""
    return _op("mkdir", path, mode)


def create(path: str, mode: int) -> bytes:
    """creat(2), then close(2)."""
    return _op("create", path, mode)


def unlink(path: str) -> bytes:
    """unlink(2)."""
    return _op("unlink", path)


def rmdir(path: str) -> bytes:
    """rmdir(2)."""
    return _op("rmdir", path)


def chdir(path: str) -> bytes:
    """chdir(2)."""
    return _op("chdir", path)


def sync() -> bytes:
    """sync(2)."""
    return _op("sync")


def fault(kind: str) -> bytes:
    """A fault of the core, for proving that outcomes are told right."""
    return _op("fault", kind)


def write(path: Path, operations: Iterable[bytes]) -> str:
    """Write the stream to `path`, whole or not at all, without holding it in memory; its sha256 is returned."""
    summed = hashlib.sha256()
    with whole.writing(path) as out:
        for piece in _framed(operations):
            summed.update(piece)
            out.write(piece)
    return summed.hexdigest()


def _framed(operations: Iterable[bytes]) -> Iterator[bytes]:
    yield MAGIC + VERSION.to_bytes(4, "little")
    yield from operations
    yield _op("end")


def read(data: bytes) -> Iterator[tuple[str, list[str | int]]]:
    """The operations of a stream by name, with their arguments. Raises UserError where it is not a whole stream."""
    if data[:8] != MAGIC:
        raise UserError("this is not a stream of operations: it does not begin with FSEXPOPS")
    if int.from_bytes(data[8:12], "little") != VERSION:
        raise UserError("this stream of operations has another version than 1")
    at = 12
    try:
        while True:
            name, kinds = _BY_CODE[data[at]]
            at += 1
            arguments: list[str | int] = []
            for kind in kinds:
                number, at = _take_number(data, at)
                if kind == "s":
                    text = data[at : at + number]
                    if len(text) != number or data[at + number] != 0:
                        raise IndexError
                    at += number + 1
                    arguments.append(os.fsdecode(text))
                else:
                    arguments.append(number)
            yield name, arguments
            if name == "end":
                break
    except (IndexError, KeyError):
        raise UserError(f"the stream of operations is damaged at byte {at}") from None
    if at != len(data):
        raise UserError(f"the stream of operations goes on after its end, at byte {at}")


def _take_number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
