"""The stream of operations that the core replays: its encoding, and a reader for people.

Layout (version 2, all of it little-endian): 8 bytes "FSEXPOPS", 4 bytes version, then operations: one byte, its
arguments. A number is an unsigned LEB128; a string is its length as a number, its bytes, and one NUL that the length
does not count, so that the core hands the system call the string as it lies in memory; a list is the number of its
strings (which may be empty) and these.

Each operation has a function here that encodes it. Those of read(2) and write(2) are `read_data` and `write_data`,
since `read` and `write` are of whole streams.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Literal

from fsexp import whole
from fsexp.errors import UserError

MAGIC = b"FSEXPOPS"
VERSION = 2

# Files that can be open at the same time, by number.
SLOTS = 64
# PATH_MAX less its NUL: longer strings can only be a damaged length.
STRING_BYTES_MAX = 4095
# All strings of a list, with their lengths and NULs: they have to fit into a record.
LIST_BYTES_MAX = 64 * 1024

# Operation -> code and the kinds of its arguments: s string, i number, l list of strings. vmimages/core/stream.c has
# the same table, with the limits of the numbers.
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
    "open": (0x16, "isii"),
    "close": (0x17, "i"),
    "write": (0x18, "iiii"),
    "read": (0x19, "ii"),
    "fsync": (0x1A, "i"),
    "fdatasync": (0x1B, "i"),
    "sync-file-range": (0x1C, "iiii"),
    "fallocate": (0x1D, "iiii"),
    "ftruncate": (0x1E, "ii"),
    "fchmod": (0x1F, "ii"),
    "fchown": (0x20, "iii"),
    "futimens": (0x21, "ii"),
    "rename": (0x22, "ss"),
    "link": (0x23, "ss"),
    "symlink": (0x24, "ss"),
    "truncate": (0x25, "si"),
    "stat": (0x26, "s"),
    "chmod": (0x27, "si"),
    "utimes": (0x28, "si"),
    "drop-caches": (0x30, ""),
    "remount": (0x31, ""),
    "walk": (0x40, "sss"),
    "copy": (0x41, "sss"),
    "remove": (0x42, "ss"),
    "verify": (0x50, "s"),
    "command": (0x60, "sll"),
    "fault": (0x7F, "s"),
}
_BY_CODE = {code: (name, kinds) for name, (code, kinds) in TABLE.items()}
_CODES = {name: bytes([code]) for name, (code, _) in TABLE.items()}

Argument = str | int | list[str]


@functools.lru_cache(maxsize=4096)  # lengths and modes come again and again
def _number(value: int) -> bytes:
    if not 0 <= value < 2**64:
        raise ValueError(f"a number of a stream is from 0 to 2^64-1, and this is {value}")
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _slot(value: int) -> bytes:
    if not 0 <= value < SLOTS:
        raise ValueError(f"an open file's number is from 0 to {SLOTS - 1}, and this is {value}")
    return _number(value)


def _string(value: str, least: int = 1) -> bytes:
    data = os.fsencode(value)
    if b"\0" in data:
        raise ValueError(f"a string of a stream can't contain a NUL byte: {value!r}")
    if not least <= len(data) <= STRING_BYTES_MAX:
        raise ValueError(
            f"a string of a stream has from {least} to {STRING_BYTES_MAX} bytes, this one {len(data)}: {value[:40]!r}"
        )
    return _number(len(data)) + data + b"\0"


def _list(values: Iterable[str]) -> bytes:
    strings = [_string(value, least=0) for value in values]
    encoded = b"".join(strings)
    if len(encoded) > LIST_BYTES_MAX:
        raise ValueError(f"a list of a stream has at most {LIST_BYTES_MAX} bytes, this one {len(encoded)}")
    return _number(len(strings)) + encoded


def phase(name: str) -> bytes:
    """Begin the timed phase `name`."""
    return _CODES["phase"] + _string(name)


def phase_end() -> bytes:
    """End the timed phase."""
    return _CODES["phase-end"]


def mkdir(path: str, mode: int) -> bytes:
    """mkdir(2)."""
    return _CODES["mkdir"] + _string(path) + _number(mode)


def create(path: str, mode: int) -> bytes:
    """creat(2), then close(2)."""
    return _CODES["create"] + _string(path) + _number(mode)


def unlink(path: str) -> bytes:
    """unlink(2)."""
    return _CODES["unlink"] + _string(path)


def rmdir(path: str) -> bytes:
    """rmdir(2)."""
    return _CODES["rmdir"] + _string(path)


def chdir(path: str) -> bytes:
    """chdir(2)."""
    return _CODES["chdir"] + _string(path)


def sync() -> bytes:
    """sync(2)."""
    return _CODES["sync"]


def open(slot: int, path: str, flags: int, mode: int = 0o644) -> bytes:
    """open(2) into a slot that is not in use; `flags` as Python's os.O_* give them on Linux."""
    return _CODES["open"] + _slot(slot) + _string(path) + _number(flags) + _number(mode)


def close(slot: int) -> bytes:
    """close(2)."""
    return _CODES["close"] + _slot(slot)


def write_data(slot: int, pattern: int, seed: int, length: int) -> bytes:
    """write(2) at the file's position, in calls of at most 1 MiB, of `fsexp.pattern.content(pattern, seed, length)`."""
    return _CODES["write"] + _slot(slot) + _number(pattern) + _number(seed) + _number(length)


def read_data(slot: int, length: int) -> bytes:
    """read(2) in calls of at most 1 MiB, until `length` bytes were read or the file ends."""
    return _CODES["read"] + _slot(slot) + _number(length)


def fsync(slot: int) -> bytes:
    """fsync(2)."""
    return _CODES["fsync"] + _slot(slot)


def fdatasync(slot: int) -> bytes:
    """fdatasync(2)."""
    return _CODES["fdatasync"] + _slot(slot)


def sync_file_range(slot: int, offset: int, length: int, flags: int) -> bytes:
    """sync_file_range(2); the flags are 1 wait before, 2 write, 4 wait after."""
    return _CODES["sync-file-range"] + _slot(slot) + _number(offset) + _number(length) + _number(flags)


def fallocate(slot: int, mode: int, offset: int, length: int) -> bytes:
    """fallocate(2); a filesystem that does not do it is counted, and no failure."""
    return _CODES["fallocate"] + _slot(slot) + _number(mode) + _number(offset) + _number(length)


def ftruncate(slot: int, length: int) -> bytes:
    """ftruncate(2)."""
    return _CODES["ftruncate"] + _slot(slot) + _number(length)


def fchmod(slot: int, mode: int) -> bytes:
    """fchmod(2)."""
    return _CODES["fchmod"] + _slot(slot) + _number(mode)


def fchown(slot: int, uid: int, gid: int) -> bytes:
    """fchown(2)."""
    return _CODES["fchown"] + _slot(slot) + _number(uid) + _number(gid)


def futimens(slot: int, seconds: int) -> bytes:
    """futimens(3): both times, in seconds since 1970."""
    return _CODES["futimens"] + _slot(slot) + _number(seconds)


def rename(old: str, new: str) -> bytes:
    """rename(2)."""
    return _CODES["rename"] + _string(old) + _string(new)


def link(old: str, new: str) -> bytes:
    """link(2)."""
    return _CODES["link"] + _string(old) + _string(new)


def symlink(target: str, path: str) -> bytes:
    """symlink(2)."""
    return _CODES["symlink"] + _string(target) + _string(path)


def truncate(path: str, length: int) -> bytes:
    """truncate(2)."""
    return _CODES["truncate"] + _string(path) + _number(length)


def stat(path: str) -> bytes:
    """lstat(2)."""
    return _CODES["stat"] + _string(path)


def chmod(path: str, mode: int) -> bytes:
    """chmod(2)."""
    return _CODES["chmod"] + _string(path) + _number(mode)


def utimes(path: str, seconds: int) -> bytes:
    """utimensat(2) of both times, in seconds since 1970; a symbolic link is not followed."""
    return _CODES["utimes"] + _string(path) + _number(seconds)


def drop_caches() -> bytes:
    """Drop the page cache, dentries and inodes that are clean: a `sync` before it is the stream's business."""
    return _CODES["drop-caches"]


def remount() -> bytes:
    """Unmount and mount again, outside phases only; no file may be open. Goes to the top directory."""
    return _CODES["remount"]


def walk(program: str, path: str, type_: Literal["d", "f"]) -> bytes:
    """Walk a tree as `program`, a `find PATH -type TYPE`, does it."""
    return _CODES["walk"] + _string(program) + _string(path) + _string(type_)


def copy(program: str, source: str, target: str) -> bytes:
    """Copy a tree as `program`, a `cp -a SOURCE TARGET`, does it."""
    return _CODES["copy"] + _string(program) + _string(source) + _string(target)


def remove(program: str, path: str) -> bytes:
    """Remove a tree as `program`, an `rm -rf PATH`, does it."""
    return _CODES["remove"] + _string(program) + _string(path)


def verify(manifest: str) -> bytes:
    """Compare the tree under the top directory with the manifest in that file, outside phases only."""
    return _CODES["verify"] + _string(manifest)


def command(argv: Iterable[str], directory: str = ".", environment: Mapping[str, str] | None = None) -> bytes:
    """Run a program in `directory` and wait for it; `environment` is added to the core's own."""
    variables = [f"{name}={value}" for name, value in (environment or {}).items()]
    return _CODES["command"] + _string(directory) + _list(argv) + _list(variables)


def fault(kind: str) -> bytes:
    """A fault of the core, for proving that outcomes are told right."""
    return _CODES["fault"] + _string(kind)


def write(path: Path, operations: Iterable[bytes]) -> str:
    """Write the stream to `path`, whole or not at all, without holding it in memory; its sha256 is returned."""
    summed = hashlib.sha256()
    with whole.writing(path) as out:
        for piece in _batches(operations):
            summed.update(piece)
            out.write(piece)
    return summed.hexdigest()


# Operations are written by this many: a call of a digest and of a file for each would take most of the time.
_BATCH = 10_000


def _batches(operations: Iterable[bytes]) -> Iterator[bytes]:
    yield MAGIC + VERSION.to_bytes(4, "little")
    batch: list[bytes] = []
    for operation in operations:
        batch.append(operation)
        if len(batch) == _BATCH:
            yield b"".join(batch)
            batch.clear()
    yield b"".join(batch) + _CODES["end"]


# Of a stream that is read: how much of it is held in memory.
_CHUNK_BYTES = 2**18


def read(source: bytes | Path) -> Iterator[tuple[str, list[Argument]]]:
    """The operations of a stream by name, with their arguments, from its bytes or its file, which is not held whole.

    Raises UserError where it is not a whole stream.
    """
    if isinstance(source, bytes):
        yield from _read(io.BytesIO(source))
        return
    with source.open("rb") as file:
        yield from _read(file)


def _read(file: BinaryIO) -> Iterator[tuple[str, list[Argument]]]:
    header = file.read(len(MAGIC) + 4)
    if header[:8] != MAGIC:
        raise UserError("this is not a stream of operations: it does not begin with FSEXPOPS")
    if int.from_bytes(header[8:], "little") != VERSION:
        raise UserError(f"this stream of operations has another version than {VERSION}")
    passed, data, at = len(header), b"", 0  # `data` begins `passed` bytes from the stream's start
    while True:
        try:
            name, arguments, after = _take(data, at)
        except IndexError:  # it goes on in what was not read yet
            more = file.read(_CHUNK_BYTES)
            if not more:
                raise _damaged(passed + at) from None
            passed, data, at = passed + at, data[at:] + more, 0
            continue
        except (KeyError, ValueError):
            raise _damaged(passed + at) from None
        at = after
        yield name, arguments
        if name == "end":
            break
    if at != len(data) or file.read(1):
        raise UserError(f"the stream of operations goes on after its end, at byte {passed + at}")


def _damaged(at: int) -> UserError:
    return UserError(f"the stream of operations is damaged at byte {at}")


def _take(data: bytes, at: int) -> tuple[str, list[Argument], int]:
    """An operation, and where the next begins. IndexError where the bytes end in it, Key- or ValueError if damaged."""
    name, kinds = _BY_CODE[data[at]]
    at += 1
    arguments: list[Argument] = []
    for kind in kinds:
        if kind == "s":
            text, at = _take_string(data, at)
            arguments.append(text)
            continue
        number, at = _take_number(data, at)
        if kind == "i":
            arguments.append(number)
            continue
        texts, limit = [], at + LIST_BYTES_MAX
        for _ in range(number):
            text, at = _take_string(data, at, least=0)
            if at > limit:
                raise ValueError
            texts.append(text)
        arguments.append(texts)
    return name, arguments, at


def _take_string(data: bytes, at: int, least: int = 1) -> tuple[str, int]:
    length, at = _take_number(data, at)
    if not least <= length <= STRING_BYTES_MAX or data[at + length] != 0:
        raise ValueError
    return os.fsdecode(data[at : at + length]), at + length + 1


def _take_number(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    for shift in range(7, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 2**64:
                raise ValueError
            return value, at
    raise ValueError
