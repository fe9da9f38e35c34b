"""Whole trees in a guest, the tree that is left against its manifest, and one that differs from it."""

import os
import shutil

import pytest
from bench import CORE, FILESYSTEMS

from fsexp import disk, manifest, ops, run
from fsexp.pattern import Pattern
from fsexp.vm import guest

pytestmark = pytest.mark.vm

FILES = 40
PROGRAMS = {"old": ("findutils-4.4.2", "coreutils-8.12"), "new": ("findutils-4.9", "coreutils-9.1")}


def stream():
    yield ops.mkdir("tree", 0o755)
    yield ops.mkdir("tree/shared", 0o755)
    yield ops.chmod("tree/shared", 0o2775)
    for number in range(FILES):
        yield ops.open(0, f"tree/shared/{number}", os.O_WRONLY | os.O_CREAT, 0o640)
        yield ops.write_data(0, Pattern.TEXT, number, number * 1000)
        yield ops.close(0)
    yield ops.link("tree/shared/7", "tree/seven")
    yield ops.symlink("shared/7", "tree/link")
    yield ops.remount()
    for age, (find, coreutils) in PROGRAMS.items():
        yield ops.phase(age)
        yield ops.walk(find, "tree", "f")
        yield ops.copy(coreutils, "tree", f"copy-{age}")
        yield ops.phase_end()
        yield ops.copy(coreutils, "tree", "another")
        yield ops.remove(coreutils, "another")
    yield ops.remount()
    yield ops.verify("/fsexp/manifest")


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_a_tree_is_verified(filesystem, prepared, tmp_path):
    ops.write(tmp_path / "ops", stream())
    manifest.write(tmp_path / "manifest", ops.read(tmp_path / "ops"))
    changed = [*stream(), ops.truncate("copy-old/seven", 6999), ops.verify("/fsexp/manifest")]
    ops.write(tmp_path / "ops", changed)
    kernel = guest.read_kernel(prepared.kernel())
    made = guest.Guest(kernel, CORE)
    disk_mib = FILESYSTEMS[filesystem]["disk_mib"]
    layout = disk.layout(prepared.config.disks["ram"], disk_mib)
    made.disks(layout)
    made.image(prepared.image(filesystem))
    made.mount(filesystem, "")
    made.file("fsexp/manifest", (tmp_path / "manifest").read_bytes())
    made.ops(tmp_path / "ops")
    result, files = run.start(prepared.config, run.described(prepared.config, made, layout, 1))
    shutil.rmtree(files)
    found = {}
    for record in result["records"]:
        found.setdefault(record["type"], []).append(record)
    content = sum(number * 1000 for number in range(FILES))
    [verify] = found["verify"]
    # Three trees of two directories, the files, one more name and a link; the seventh file has two names.
    assert (verify["entries"], verify["bytes"]) == (3 * (2 + FILES + 2), 3 * (content + 7000))
    trees = {(one["phase"], one["operation"]): one for one in found["tree"]}
    for age in PROGRAMS:
        assert trees[age, "walk"]["matches"] == FILES + 1
        assert trees[age, "copy"]["bytes"] == content
        assert [one["bytes"] for one in found["phase"] if one["name"] == age] == [content]
    assert result["outcome"] == "corrupt"
    [fail] = found["fail"]
    assert (fail["operation"], fail["path"]) == ("size", "copy-old/seven")
