"""Upgrade packages as dpkg does, call by call, without running a maintainer script.

Goffredo Baroncelli, "[RFC][PATCH V3] btrfs: ssd_metadata", linux-btrfs, 5 April 2020, timed `apt-get dist-upgrade` of
2251 packages, with dpkg's default and with its force-unsafe-io. What is replayed for each package is read from dpkg's
source (archives.c, unpack.c, filesdb.c, dbmodify.c of 1.20):

1. control files: each written to a folder of its own and synced, then the folder;
2. each change of the status: a record written, synced, renamed into `updates`, the folder synced; after 250 records the
   whole status is written anew and synced, the records are removed;
3. each file: NAME.dpkg-new, its space asked for, written, its writing begun (sync_file_range), owner, mode, times; the
   old one linked as NAME.dpkg-tmp;
4. unless `unsafe_io`: for each file a wait for its writing, then for each an fsync; each renamed over the old one;
5. the control files moved into `info`, the list of files written and synced, the folder synced;
6. each NAME.dpkg-tmp removed.

`eatmydata` leaves out every fsync, fdatasync, sync and sync_file_range, as libeatmydata does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from fsexp import ops as op
from fsexp.pattern import Pattern

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_OVER = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
# SYNC_FILE_RANGE_WAIT_BEFORE and SYNC_FILE_RANGE_WRITE of linux/fs.h.
_WAIT, _WRITE = 1, 2
# dpkg's dbmodify.c, MAXUPDATES.
_RECORDS_MAX = 250
# A package's part of the status file and one record of a change, in bytes: 892 is the mean of the installation below.
_STATUS_BYTES = 892
# Changes of a package's status in an upgrade: half-installed, unpacked, half-configured, installed and the triggers'.
_CHANGES_BEFORE, _CHANGES_AFTER = 4, 4

# Quantiles of an installation of Debian 12 with 787 packages and 96,604 files (dpkg's lists and lstat): files for each
# package, bytes of each file, control files for each package, bytes of each control file.
_FILES = (
    1, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 8, 8,
    9, 9, 10, 11, 12, 13, 14, 16, 17, 19, 22, 24, 28, 32, 38, 49, 55, 67, 87, 107, 136, 168, 219, 306, 612, 1484,
)  # fmt: skip
_SIZES = (
    0, 66, 139, 208, 273, 344, 409, 458, 506, 552, 592, 627, 675, 726, 769, 825, 884, 939, 986, 1025, 1064, 1103, 1149,
    1196, 1242, 1295, 1352, 1415, 1478, 1541, 1606, 1678, 1764, 1866, 1986, 2123, 2264, 2421, 2603, 2806, 3027, 3275,
    3536, 3870, 4244, 4713, 5267, 5952, 6707, 7693, 8762, 10174, 11680, 13714, 15287, 17801, 20776, 24379, 30241,
    38601, 52655, 77438, 129064, 422055,
)  # fmt: skip
_CONTROL_FILES = (2, 2, 2, 2, 2, 3, 4, 4, 4, 5, 5, 5, 5, 5, 5, 7)
_CONTROL_SIZES = (28, 38, 65, 68, 68, 118, 221, 289, 331, 418, 551, 821, 1461, 2964, 6681, 27233)

_CONTROL_NAMES = ("control", "md5sums", "postinst", "prerm", "postrm", "preinst", "conffiles")
_DPKG = "var/lib/dpkg"


class Parameters(BaseModel):
    """Parameters of package-upgrade."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="package-upgrade")

    packages: int = Field(default=32, ge=1, le=100_000, description="packages upgraded; published: 2251")
    unsafe_io: bool = Field(default=False, description="dpkg's force-unsafe-io; published: both")
    eatmydata: bool = Field(default=False, description="no sync of any kind; published: as a remedy, without figures")


def phases(_: Parameters) -> list[str]:
    """The upgrade, and what is left to be written after it."""
    return ["upgrade", "sync"]


def ops(parameters: Parameters) -> Iterator[bytes]:
    """The installation as it is before, on the disk; then the upgrade."""
    for folder in ("usr", "usr/share", "var", "var/lib", _DPKG, *(f"{_DPKG}/{name}" for name in _FOLDERS)):
        yield op.mkdir(folder, 0o755)
    yield from _written(f"{_DPKG}/status", _OVER, 0, parameters.packages * _STATUS_BYTES)
    for package in range(parameters.packages):
        yield op.mkdir(_place(package), 0o755)
        for number, size in _files(package):
            yield from _written(_name(package, number), _NEW, 2 * number, size)
        for name, size in _control(package):
            yield from _written(f"{_DPKG}/info/pkg{package}.{name}", _NEW, package, size)
        yield from _written(f"{_DPKG}/info/pkg{package}.list", _NEW, package, _list_bytes(package))
    yield op.remount()
    yield op.phase("upgrade")
    changes = 0
    for package in range(parameters.packages):
        yield from _upgrade(package, parameters, changes)
        changes += _CHANGES_BEFORE + _CHANGES_AFTER
    yield op.phase_end()
    yield op.phase("sync")
    yield op.sync()
    yield op.phase_end()


_FOLDERS = ("info", "updates", "tmp.ci")


def _place(package: int) -> str:
    return f"usr/share/pkg{package}"


def _name(package: int, number: int) -> str:
    return f"{_place(package)}/file{number}"


def _files(package: int) -> Iterator[tuple[int, int]]:
    """(number, bytes) of each file of the package. 37, 29 and 11 have no factor in common with the tables' lengths."""
    for number in range(_FILES[package * 37 % len(_FILES)]):
        yield number, _SIZES[(package * 11 + number * 29) % len(_SIZES)]


def _control(package: int) -> Iterator[tuple[str, int]]:
    for number in range(_CONTROL_FILES[package * 11 % len(_CONTROL_FILES)]):
        yield _CONTROL_NAMES[number], _CONTROL_SIZES[(package * 5 + number * 11) % len(_CONTROL_SIZES)]


def _list_bytes(package: int) -> int:
    return sum(len(_name(package, number)) + 2 for number, _ in _files(package))


def _written(path: str, flags: int, seed: int, size_bytes: int) -> Iterator[bytes]:
    yield op.open(0, path, flags, 0o644)
    if size_bytes:
        yield op.write_data(0, Pattern.TEXT, seed, size_bytes)
    yield op.close(0)


def _synced_folder(path: str, synced: bool) -> Iterator[bytes]:
    yield op.open(0, path, _FOLDER, 0)
    if synced:
        yield op.fsync(0)
    yield op.close(0)


def _synced_file(path: str, flags: int, seed: int, size_bytes: int, synced: bool) -> Iterator[bytes]:
    yield op.open(0, path, flags, 0o644)
    yield op.write_data(0, Pattern.TEXT, seed, size_bytes)
    if synced:
        yield op.fsync(0)
    yield op.close(0)


def _upgrade(package: int, parameters: Parameters, changes: int) -> Iterator[bytes]:
    synced = not parameters.eatmydata
    control = f"{_DPKG}/tmp.ci"
    for name, size in _control(package):
        yield from _synced_file(f"{control}/{name}", _NEW, package + 1, size, synced)
    yield from _synced_folder(control, synced)
    for number in range(_CHANGES_BEFORE):
        yield from _status(changes + number, parameters)
    yield from _unpack(package, synced)
    if synced and not parameters.unsafe_io:
        for number, _ in _files(package):
            yield op.open(0, f"{_name(package, number)}.dpkg-new", os.O_WRONLY, 0)
            yield op.sync_file_range(0, 0, 0, _WAIT)
            yield op.close(0)
    for number, _ in _files(package):
        new = f"{_name(package, number)}.dpkg-new"
        if not parameters.unsafe_io:
            yield op.open(0, new, os.O_WRONLY, 0)
            if synced:
                yield op.fsync(0)
            yield op.close(0)
        yield op.rename(new, _name(package, number))
    info = f"{_DPKG}/info"
    yield from _synced_file(f"{info}/pkg{package}.list-new", _OVER, package + 1, _list_bytes(package), synced)
    yield op.rename(f"{info}/pkg{package}.list-new", f"{info}/pkg{package}.list")
    for name, _ in _control(package):
        yield op.rename(f"{control}/{name}", f"{info}/pkg{package}.{name}")
    yield from _synced_folder(info, synced)
    for number, _ in _files(package):
        yield op.unlink(f"{_name(package, number)}.dpkg-tmp")
    for number in range(_CHANGES_AFTER):
        yield from _status(changes + _CHANGES_BEFORE + number, parameters)


def _unpack(package: int, synced: bool) -> Iterator[bytes]:
    for number, size in _files(package):
        name = _name(package, number)
        yield op.open(0, f"{name}.dpkg-new", _NEW, 0)
        if size:
            yield op.fallocate(0, 0, 0, size)
            yield op.write_data(0, Pattern.TEXT, 2 * number + 1, size)
        if synced:
            yield op.sync_file_range(0, 0, 0, _WRITE)
        yield op.fchown(0, 0, 0)
        yield op.fchmod(0, 0o644)
        yield op.close(0)
        yield op.utimes(f"{name}.dpkg-new", 1_580_000_000)
        yield op.link(name, f"{name}.dpkg-tmp")


def _status(change: int, parameters: Parameters) -> Iterator[bytes]:
    """One record of a change; with the 250th the whole status."""
    synced = not parameters.eatmydata
    updates = f"{_DPKG}/updates"
    yield op.open(0, f"{updates}/tmp.i", _OVER, 0o644)
    yield op.write_data(0, Pattern.TEXT, change, _STATUS_BYTES)
    yield op.ftruncate(0, _STATUS_BYTES)
    if synced:
        yield op.fsync(0)
    yield op.close(0)
    record = change % _RECORDS_MAX
    yield op.rename(f"{updates}/tmp.i", f"{updates}/{record:04d}")
    yield from _synced_folder(updates, synced)
    if record + 1 < _RECORDS_MAX:
        return
    yield from _synced_file(f"{_DPKG}/status-new", _OVER, change, parameters.packages * _STATUS_BYTES, synced)
    if change >= _RECORDS_MAX:
        yield op.unlink(f"{_DPKG}/status-old")
    yield op.link(f"{_DPKG}/status", f"{_DPKG}/status-old")
    yield op.rename(f"{_DPKG}/status-new", f"{_DPKG}/status")
    yield from _synced_folder(_DPKG, synced)
    for number in range(_RECORDS_MAX):
        yield op.unlink(f"{updates}/{number:04d}")
    yield from _synced_folder(updates, synced)
