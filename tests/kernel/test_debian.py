import hashlib
import json
import lzma
import struct
import subprocess

import packages
import pytest

from fsexp import kernel, lock, whole
from fsexp.apt import NotOffered
from fsexp.errors import MachineError, UserError
from fsexp.kernel import debian

RELEASE = "6.1.0-1-amd64"


def index(*paragraphs):
    table = {}
    for name, version, depends in paragraphs:
        table[name] = {
            "Package": name, "Version": version, "Depends": depends, "Size": "1", "SHA256": "00" * 32,
            "Filename": f"pool/{name}.deb",
        }  # fmt: skip

    def show(name, version=None):
        if name not in table or version not in (None, table[name]["Version"]):
            raise NotOffered(name)
        return table[name]

    return show


LAYOUTS = {
    "one package, named by version": (
        index(
            ("linux-image-amd64", "6.1.1-3", "linux-image-6.1.0-1-amd64 (= 6.1.1-3)"),
            ("linux-image-6.1.0-1-amd64", "6.1.1-3", "kmod, linux-base (>= 4.3~), dracut | linux-initramfs-tool"),
        ),
        ["linux-image-6.1.0-1-amd64"],
    ),
    "one package, named without version": (
        index(
            ("linux-image-amd64", "4.19+1", "linux-image-4.19.0-2-amd64"),
            ("linux-image-4.19.0-2-amd64", "4.19.3-1", "kmod, linux-base (>= 4.3~)"),
        ),
        ["linux-image-4.19.0-2-amd64"],
    ),
    "split by content": (
        index(
            ("linux-image-amd64", "7.3-1", "linux-base-amd64 (= 7.3-1), linux-image-7.3-amd64 (= 7.3-1)"),
            ("linux-base-amd64", "7.3-1", "linux-base-7.3-amd64 (= 7.3-1)"),
            (
                "linux-image-7.3-amd64",
                "7.3-1",
                "linux-binary-7.3-amd64 (= 7.3-1), linux-modules-7.3-amd64 (= 7.3-1)",
            ),
            ("linux-binary-7.3-amd64", "7.3-1", "linux-base-7.3-amd64 (= 7.3-1)"),
            ("linux-modules-7.3-amd64", "7.3-1", "kmod, linux-base-7.3-amd64 (= 7.3-1)"),
            ("linux-base-7.3-amd64", "7.3-1", ""),
        ),
        ["linux-base-7.3-amd64", "linux-binary-7.3-amd64", "linux-image-7.3-amd64", "linux-modules-7.3-amd64"],
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_choose_follows_to_the_packages_with_content(layout):
    show, expected = LAYOUTS[layout]
    assert [record["package"] for record in debian.choose(show, "linux-image-amd64")] == expected


def test_choose_takes_the_kernel_itself_too():
    show, expected = LAYOUTS["one package, named by version"]
    assert [record["package"] for record in debian.choose(show, expected[0])] == expected


def test_choose_refuses_what_is_no_kernel():
    with pytest.raises(UserError, match="bash is no kernel"):
        debian.choose(index(("bash", "1", "libc6")), "bash")


def test_choose_follows_to_the_package_with_source():
    show = index(
        ("linux-source", "6.1.192-3", "linux-source-6.1 (= 6.1.192-3)"),
        ("linux-source-6.1", "6.1.192-3", "binutils, xz-utils"),
    )
    for name in ("linux-source", "linux-source-6.1"):
        assert [r["package"] for r in debian.choose(show, name, debian.SOURCE)] == ["linux-source-6.1"]
    with pytest.raises(UserError, match="is no source of a kernel"):
        debian.choose(index(("linux-image-6.1", "1", "kmod")), "linux-image-6.1", debian.SOURCE)


def bzimage():
    kernel = packages.make_vmlinux()
    return packages.make_bzimage(lzma.compress(kernel) + struct.pack("<I", len(kernel)), RELEASE)


def modules_of(prefix, suffix, compress):
    return {
        f"{prefix}/kernel/drivers/block/brd.ko{suffix}": compress(packages.sign(packages.make_module())),
        f"{prefix}/kernel/fs/ext4/ext4.ko{suffix}": compress(packages.make_module(depends="jbd2", alias="fs-ext4")),
        f"{prefix}/kernel/fs/jbd2/jbd2.ko{suffix}": compress(packages.make_module()),
        f"{prefix}/kernel/drivers/net/loud.ko{suffix}": compress(packages.make_module()),
        f"{prefix}/modules.builtin": b"kernel/drivers/scsi/sd_mod.ko\nkernel/block/a-b.ko\n",
    }


@pytest.fixture(params=["whole", "split"])
def locked(request, tmp_path):
    """Packages in the cache and a lock file that names them."""
    downloads = tmp_path / "cache" / "downloads"
    downloads.mkdir(parents=True)
    if request.param == "whole":
        files = {f"./boot/vmlinuz-{RELEASE}": bzimage(), f"./boot/config-{RELEASE}": b"CONFIG_X=y\n"}
        files |= modules_of(f"./lib/modules/{RELEASE}", "", bytes)
        debs = [packages.make_deb(downloads / f"linux-image-{RELEASE}_6.1-1_amd64.deb", files)]
    else:
        root = f"./usr/lib/modules/{RELEASE}"
        files = modules_of(root, ".xz", lzma.compress)
        base = {f"{root}/config": b"CONFIG_X=y\n", f"{root}/modules.builtin": files.pop(f"{root}/modules.builtin")}
        parts = {"base": base, "binary": {f"{root}/vmlinuz": bzimage()}, "modules": files}
        debs = [
            packages.make_deb(downloads / f"linux-{part}-{RELEASE}_6.1-1_amd64.deb", content, ".zst")
            for part, content in parts.items()
        ]
    spec = {"suite": "bookworm", "package": "linux-image-amd64"}
    lock_file = tmp_path / "kernels.lock"
    lock.put(lock_file, debian.key(spec), {"packages": [packages.deb_record(path) for path in debs]})
    return spec, tmp_path / "cache", lock_file


@pytest.fixture
def no_programs(monkeypatch):
    def refuse(*arguments, **_):
        raise AssertionError(f"called {arguments}")

    monkeypatch.setattr(subprocess, "run", refuse)


def test_fetch_from_lock_and_cache_alone(locked, tmp_path, no_programs):
    output = tmp_path / "kernels" / "one"
    with whole.folder(output) as fresh:
        (fresh / "stale").touch()
    description = debian.fetch(*locked, output)
    assert description == json.loads((output / "kernel.json").read_text())
    assert description["format"] == 1
    assert description["release"] == RELEASE
    assert description["image"]["format"] == "elf"
    assert description["image"]["compression"] == "xz"
    assert (output / "image").read_bytes() == packages.make_vmlinux()
    assert (output / "config").read_text() == "CONFIG_X=y\n"
    assert sorted(description["modules"]) == ["brd", "ext4", "jbd2"]
    assert (output / "modules" / "brd.ko").read_bytes() == packages.make_module()
    assert description["modules"]["ext4"]["depends"] == ["jbd2"]
    assert description["builtin"] == ["a_b", "sd_mod"]
    assert "sd_mod" not in description["lacking"]
    assert "btrfs" in description["lacking"]
    assert description["source"]["kind"] == "debian"
    assert not (output / "stale").exists()
    assert [path.name for path in output.parent.iterdir()] == ["one"]


def test_the_digest_is_of_the_content(locked, tmp_path, no_programs):
    one = debian.fetch(*locked, tmp_path / "one")
    two = debian.fetch(*locked, tmp_path / "two")
    assert one["digest"] == two["digest"]
    two["modules"]["brd"]["sha256"] = "0" * 64
    assert kernel.content_digest(two) != one["digest"]


def test_a_failure_leaves_the_output_as_it_was(tmp_path):
    downloads = tmp_path / "cache" / "downloads"
    downloads.mkdir(parents=True)
    deb = packages.make_deb(downloads / "linux-image-1_1_amd64.deb", {"./usr/x": b""})
    spec = {"suite": "s", "package": "p"}
    lock.put(tmp_path / "k.lock", debian.key(spec), {"packages": [packages.deb_record(deb)]})
    output = tmp_path / "out"
    with whole.folder(output) as fresh:
        (fresh / "old").touch()
    with pytest.raises(UserError, match="0 files that are an image"):
        debian.fetch(spec, tmp_path / "cache", tmp_path / "k.lock", output)
    assert {path.name for path in output.iterdir()} == {"old", whole.MARKER}
    assert not list(tmp_path.glob(".out*"))


@pytest.fixture
def source(tmp_path):
    """A linux-source package in the cache, as Debian 12's is made, and a lock file that names it."""
    downloads = tmp_path / "cache" / "downloads"
    downloads.mkdir(parents=True)
    files = {
        "./usr/src/linux-source-6.1.tar.xz": b"the tarball",
        "./usr/src/linux-patch-6.1-rt.patch.xz": b"a patch",
        "./usr/share/doc/linux-source-6.1/copyright": b"text",
    }
    deb = packages.make_deb(downloads / "linux-source-6.1_6.1.192-3_all.deb", files)
    spec = {"suite": "bookworm", "package": "linux-source-6.1"}
    lock.put(tmp_path / "k.lock", debian.key(spec), {"packages": [packages.deb_record(deb)]})
    return spec, tmp_path / "cache", tmp_path / "k.lock"


def test_the_tarball_is_taken_out_of_the_package(source, no_programs):
    spec, cache, lock_file = source
    path = debian.source_tarball(*source)
    assert path == cache / "downloads" / "linux-source-6.1_6.1.192-3.tar.xz"
    assert path.read_bytes() == b"the tarball"
    entry = lock.read(lock_file)[debian.key(spec)]
    assert entry["tarball"] == {"file": path.name, "bytes": 11, "sha256": hashlib.sha256(b"the tarball").hexdigest()}
    assert [record["package"] for record in entry["packages"]] == ["linux-source-6.1"]


def test_with_the_tarball_the_package_is_not_needed(source, no_programs):
    path = debian.source_tarball(*source)
    path.with_name("linux-source-6.1_6.1.192-3_all.deb").unlink()
    assert debian.source_tarball(*source) == path


def test_a_damaged_tarball_is_taken_out_again(source, no_programs):
    path = debian.source_tarball(*source)
    path.write_bytes(b"the tar")
    assert debian.source_tarball(*source).read_bytes() == b"the tarball"


def test_another_tarball_than_the_locked_one_is_refused(source, no_programs):
    spec, _, lock_file = source
    path = debian.source_tarball(*source)
    entry = lock.read(lock_file)[debian.key(spec)]
    lock.put(lock_file, debian.key(spec), entry | {"tarball": entry["tarball"] | {"sha256": "0" * 64}})
    with pytest.raises(MachineError, match="another digest"):
        debian.source_tarball(*source)
    assert lock.read(lock_file)[debian.key(spec)]["tarball"]["sha256"] == "0" * 64
    assert path.exists()


@pytest.mark.network
@pytest.mark.slow
def test_a_real_kernel(tmp_path):
    spec = {"suite": "trixie-backports", "package": "linux-image-amd64"}
    description = debian.fetch(spec, tmp_path / "cache", tmp_path / "kernels.lock", tmp_path / "k")
    assert description["image"]["format"] == "elf"
    assert {"brd", "btrfs", "ext4", "xfs"} <= set(description["modules"])
