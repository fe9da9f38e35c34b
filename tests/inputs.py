"""Inputs of a run as small as they can be: nothing of them boots."""

import hashlib
import json
import tarfile

from fsexp import ops as op

BUILTIN = ["virtio_pci", "virtio_blk", "ext4"]


def _sha256(data):
    return hashlib.sha256(data).hexdigest()


def kernel(folder):
    """A kernel with one module; the others that are needed are built in."""
    (folder / "modules").mkdir(parents=True)
    (folder / "image").write_bytes(b"a kernel")
    (folder / "modules" / "brd.ko").write_bytes(b"a module")
    module = {"file": "modules/brd.ko", "sha256": _sha256(b"a module"), "depends": [], "softdeps": [], "aliases": []}
    described = {
        "format": 1,
        "release": "6.1.0",
        "digest": "a" * 64,
        "image": {"file": "image", "sha256": _sha256(b"a kernel")},
        "config": {"file": None, "sha256": None},
        "modules": {"brd": module},
        "builtin": BUILTIN,
    }
    (folder / "kernel.json").write_text(json.dumps(described))


def userland(folder):
    """An empty userland."""
    folder.mkdir(parents=True)
    with tarfile.open(folder / "root.tar", "w"):
        pass
    described = {"format": 1, "digest": _sha256((folder / "root.tar").read_bytes()), "packages": []}
    (folder / "userland.json").write_text(json.dumps(described))


def ops(path):
    """A stream of one operation."""
    op.write(path, [op.sync()])


def core(path):
    """A file in the core's place."""
    path.write_bytes(b"a core")
    return path
