"""The devices of a bcache before their first use: what make-bcache would write, as images.

The superblock of the backing device says the mode, and both have one set's UUID: the kernel puts the two together by
itself when they are registered. Behind the backing device's superblock lies the filesystem, so that it is on the
slow disk and the cache is empty when a run begins. Layout: Linux's drivers/md/bcache/bcache_ondisk.h (to 5.14
include/uapi/linux/bcache.h), struct cache_sb_disk.
"""

from __future__ import annotations

import struct
import uuid

from fsexp.image import extents

# BDEV_CACHE_MODE of the superblock's flags.
MODES = {"writethrough": 0, "writeback": 1, "writearound": 2, "none": 3}

_MAGIC = uuid.UUID("c68573f6-4e1a-45ca-8265-f57f48ba6d81").bytes
_SET = uuid.UUID("f5e9f5e9-0000-4000-8000-000000000002").bytes
_BACKING = uuid.UUID("f5e9f5e9-0000-4000-8000-000000000003").bytes
_CACHE = uuid.UUID("f5e9f5e9-0000-4000-8000-000000000004").bytes

_VERSION_CACHE, _VERSION_BACKING = 0, 1
_SUPERBLOCK_SECTOR = 8
_SECTOR_BYTES = 512
# The data begins behind the superblock, where a backing device of version 1 has it.
DATA_SECTORS = 16
# make-bcache's bucket of 512 KiB, and smaller ones on a small cache: the kernel wants more than 512 of them ("nbuckets
# is too small", cache_alloc). Its block is what the devices have, and ext4 on small disks has less than 4 KiB.
_BUCKET_SECTORS = 1024
_BUCKETS_LEAST = 1024
_BLOCK_SECTORS = 1

_HEAD = struct.Struct("<QQ16s16s16s32sQQ64x")  # offset, version, magic, uuid, set, label, flags, sequence
# Buckets (version 1 has no data offset here), block, bucket, in the set, this one's number, mounted, first bucket,
# buckets in the journal. The checksum covers as much of the list of those, which is empty.
_TAIL = struct.Struct("<QHHHHIHH")


def backing(image: bytes, disk_bytes: int, mode: str) -> bytes:
    """The image of a backing device of that size whose data is the image of a filesystem."""
    shift = DATA_SECTORS * _SECTOR_BYTES // extents.BLOCK_BYTES
    moved = [(first + shift, blocks) for first, blocks in extents.read(image)]
    tail = 0, _BLOCK_SECTORS, _BUCKET_SECTORS, 0, 0, 0, 0, 0
    return extents.pack([_superblock(_VERSION_BACKING, _BACKING, MODES[mode], tail), *moved], disk_bytes)


def cache(disk_bytes: int) -> bytes:
    """The image of an empty cache device of that size."""
    sectors = disk_bytes // _SECTOR_BYTES
    bucket_sectors = _BUCKET_SECTORS
    while sectors < _BUCKETS_LEAST * bucket_sectors:
        bucket_sectors //= 2
    tail = sectors // bucket_sectors, _BLOCK_SECTORS, bucket_sectors, 1, 0, 0, 1, 0
    return extents.pack([_superblock(_VERSION_CACHE, _CACHE, 0, tail)], disk_bytes)


def _superblock(version: int, own: bytes, flags: int, tail: tuple[int, ...]) -> extents.Extent:
    covered = _HEAD.pack(_SUPERBLOCK_SECTOR, version, _MAGIC, own, _SET, b"", flags, 0) + _TAIL.pack(*tail)
    block = struct.pack("<Q", _checksum(covered)) + covered
    first = _SUPERBLOCK_SECTOR * _SECTOR_BYTES // extents.BLOCK_BYTES
    return first, block.ljust(extents.BLOCK_BYTES, b"\0")


_POLYNOMIAL = 0x42F0E1EBA9EA3693  # ECMA-182, highest bit first


def _checksum(data: bytes) -> int:
    """bcache's CRC-64: begun and ended with all ones."""
    value = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        value ^= byte << 56
        for _ in range(8):
            value = (value << 1) ^ (_POLYNOMIAL if value >> 63 else 0)
            value &= 0xFFFFFFFFFFFFFFFF
    return value ^ 0xFFFFFFFFFFFFFFFF
