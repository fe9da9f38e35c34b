"""Filesystem types: how each is made, recognised and which modules of the kernel it needs."""

from __future__ import annotations

from dataclasses import dataclass

# mkfs takes this instead of a random number, so that the image's bytes depend on nothing else.
UUID = "f5e9f5e9-0000-4000-8000-000000000001"


@dataclass(frozen=True)
class Format:
    """One filesystem type."""

    magic: int  # statfs's f_type; Linux's include/uapi/linux/magic.h
    modules: tuple[str, ...]
    mkfs: tuple[str, ...]  # the program, and the options that make its output a function of its input
    common: tuple[str, ...]  # what makes a format that every kernel of a study mounts
    least_mib: int


FORMATS = {
    "ext4": Format(
        magic=0xEF53,
        modules=("ext4",),
        # lazy_itable_init=0: else the kernel zeroes inode tables in the background while a phase is timed.
        mkfs=(
            "mkfs.ext4", "-q", "-F", "-U", UUID, "-E",
            f"hash_seed={UUID},lazy_itable_init=0,lazy_journal_init=0",
        ),
        common=(),
        least_mib=128,
    ),
    "btrfs": Format(
        magic=0x9123683E,
        modules=("btrfs",),
        mkfs=("mkfs.btrfs", "-q", "-f", "-U", UUID),
        common=(),
        least_mib=128,  # mkfs.btrfs 6.2 refuses less than 109 MiB with DUP metadata
    ),
}  # fmt: skip


def problem(type_: str, disk_mib: int) -> str | None:
    """Why a disk of that size can't hold that type, or None."""
    least = FORMATS[type_].least_mib
    if disk_mib < least:
        return f"disk_mib is {disk_mib}, and {type_} needs {least} at least"
    return None


def mkfs(type_: str, options: str | list[str], device: str) -> list[str]:
    """The command that makes the filesystem on `device`."""
    format_ = FORMATS[type_]
    extra = format_.common if options == "common" else tuple(options)
    return [*format_.mkfs, *extra, device]
