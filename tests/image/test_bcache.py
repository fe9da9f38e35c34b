"""bcache's superblocks: the bytes that make-bcache writes, and where the filesystem goes."""

import uuid

import pytest

from fsexp.image import bcache, extents

# The first bytes of the block at 4096 as make-bcache of Debian's bcache-tools 1.0.8-4 wrote it, the rest of the device
# being zeros: `truncate -s 1G back fast; make-bcache --writeback --block 512 -B back -C fast --cset-uuid
# f5e9f5e9-0000-4000-8000-000000000002`. The devices' UUIDs it makes up.
SET = "f5e9f5e9000040008000000000000002"
BACKING, CACHE = "f266805b-35e4-4391-b235-742ad1b7231e", "6654f003-a46e-4019-84e7-30c9f11ee0cd"
WRITTEN = {
    "backing": "d243de2dfe457489 0800000000000000 0100000000000000 c68573f64e1a45ca8265f57f48ba6d81"
    f"{BACKING.replace('-', '')} {SET} {'00' * 32} 0100000000000000 {'00' * 8} {'00' * 72} 01000004",
    "cache": "ede428aed552d524 0800000000000000 0000000000000000 c68573f64e1a45ca8265f57f48ba6d81"
    f"{CACHE.replace('-', '')} {SET} {'00' * 32} {'00' * 16} {'00' * 64} 0008000000000000 01000004010000000000000001",
}
GIB = 2**30


@pytest.fixture
def same_uuids(monkeypatch):
    monkeypatch.setattr(bcache, "_BACKING", uuid.UUID(BACKING).bytes)
    monkeypatch.setattr(bcache, "_CACHE", uuid.UUID(CACHE).bytes)


def wanted(which):
    return bytes.fromhex(WRITTEN[which]).ljust(4096, b"\0")


def test_backing(same_uuids):
    image = bcache.backing(extents.pack([], GIB - 2**20), GIB, "writeback")
    assert list(extents.read(image)) == [(1, wanted("backing"))]
    assert extents.disk_bytes(image) == GIB


def test_cache(same_uuids):
    image = bcache.cache(GIB)
    assert list(extents.read(image)) == [(1, wanted("cache"))]
    assert extents.disk_bytes(image) == GIB


def test_the_filesystem_is_behind_the_superblock():
    # Data begins at sector 16 (bcache-super-show: dev.data.first_sector 16), which is the third block.
    blocks = bytes(range(256)) * 16 * 3
    filesystem = extents.pack([(0, blocks), (7000, blocks[:4096])], 64 * 2**20)
    image = bcache.backing(filesystem, 65 * 2**20, "writethrough")
    assert list(extents.read(image))[1:] == [(2, blocks), (7002, blocks[:4096])]


@pytest.mark.parametrize(
    ("mode", "number"), [("writethrough", 0), ("writeback", 1), ("writearound", 2), ("none", 3)]
)  # fmt: skip
def test_modes(mode, number):
    ((_, block),) = extents.read(bcache.backing(extents.pack([], GIB), GIB, mode))
    # bcache_ondisk.h: flags, after checksum, offset, version, three times 16 bytes and a label of 32; the low 4 bits.
    assert block[104] == number


@pytest.mark.parametrize(("mib", "bucket_kib"), [(16, 16), (256, 256), (511, 256), (512, 512), (4096, 512)])
def test_buckets(mib, bucket_kib):
    ((_, block),) = extents.read(bcache.cache(mib * 2**20))
    assert int.from_bytes(block[194:196], "little") == bucket_kib * 2
    buckets = int.from_bytes(block[184:192], "little")
    assert buckets == mib * 1024 // bucket_kib
    assert buckets > 512  # cache_alloc: "nbuckets is too small"
