"""A kernel that somebody built, from its files."""

import gzip
import lzma
import struct
import tarfile

import packages
import pytest
import zstandard

from fsexp import apt, deb, whole
from fsexp.errors import UserError
from fsexp.kernel import ModuleMissing, binary, debian, modules

RELEASE = "6.1.0-1-amd64"
CONFIG = b"# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_BLK_DEV_RAM=y\nCONFIG_EXT4_FS=y\nCONFIG_BTRFS_FS=m\n"


def bzimage(carried=b""):
    """carried: put into the vmlinux as kernel/configs.c puts it there with CONFIG_IKCONFIG."""
    vmlinux = packages.make_vmlinux() + carried + b"\x90" * 100
    return packages.make_bzimage(lzma.compress(vmlinux) + struct.pack("<I", len(vmlinux)), RELEASE)


def carried(config):
    return b"IKCFG_ST" + gzip.compress(config) + b"IKCFG_ED"


@pytest.fixture
def built(tmp_path):
    """The files of a kernel: {name: path}, modules not among them."""
    (tmp_path / "bzImage").write_bytes(bzimage())
    (tmp_path / "config").write_bytes(CONFIG)
    return {"file": str(tmp_path / "bzImage"), "config": str(tmp_path / "config")}


def install(top, **made):
    """Put modules into a folder: {name: (path in it, compression)}."""
    for content, (path, compress) in made.values():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(compress(content))
    return top


def zstd(data):
    return zstandard.ZstdCompressor().compress(data)


MADE = {
    "btrfs": (packages.make_module(depends="raid6_pq", alias="fs-btrfs"), ("kernel/fs/btrfs/btrfs.ko.zst", zstd)),
    "raid6": (packages.make_module(), ("kernel/lib/raid6/raid6_pq.ko.gz", gzip.compress)),
    "xfs": (packages.sign(packages.make_module()), ("kernel/fs/xfs/xfs.ko.xz", lzma.compress)),
    "loud": (packages.make_module(), ("kernel/drivers/net/loud.ko", bytes)),
}


@pytest.mark.parametrize("below", ["", f"lib/modules/{RELEASE}", f"usr/lib/modules/{RELEASE}"])
def test_image_modules_and_configuration(built, tmp_path, below):
    install(tmp_path / "root" / below, **MADE)
    kernel = binary.fetch({**built, "modules": str(tmp_path / "root")}, tmp_path / "out")
    assert kernel["release"] == RELEASE
    assert (kernel["image"]["format"], kernel["image"]["compression"]) == ("elf", "xz")
    assert (tmp_path / "out" / "image").read_bytes().startswith(packages.make_vmlinux())
    assert (tmp_path / "out" / "config").read_bytes() == CONFIG
    assert sorted(kernel["modules"]) == ["btrfs", "raid6_pq", "xfs"]
    assert (tmp_path / "out" / "modules" / "xfs.ko").read_bytes() == packages.make_module()
    assert kernel["builtin"] == ["brd", "ext4"]  # by the configuration
    assert modules.load_order(kernel, ["brd", "ext4", "btrfs"]) == ["raid6_pq", "btrfs"]


def test_the_form_is_that_of_debians_kernels(built, tmp_path):
    """The same files as a package and as a folder are the same kernel."""
    files = {f"./boot/vmlinuz-{RELEASE}": bzimage(), f"./boot/config-{RELEASE}": CONFIG}
    files |= {f"./lib/modules/{RELEASE}/{path}": compress(content) for content, (path, compress) in MADE.values()}
    files[f"./lib/modules/{RELEASE}/modules.builtin"] = b"kernel/drivers/block/brd.ko\n"
    cache = tmp_path / "cache"
    (cache / "downloads").mkdir(parents=True)
    package = packages.make_deb(cache / "downloads" / f"linux-image-{RELEASE}_6.1-1_amd64.deb", files)
    spec = {"suite": "s", "package": f"linux-image-{RELEASE}"}
    debian.lock.put(tmp_path / "k.lock", debian.key(spec), {"packages": [packages.deb_record(package)]})
    packaged = debian.fetch(spec, cache, tmp_path / "k.lock", tmp_path / "one")

    top = install(tmp_path / "root", **MADE)
    (top / "modules.builtin").write_text("kernel/drivers/block/brd.ko\n")
    given = binary.fetch({**built, "modules": str(top)}, tmp_path / "two")
    packaged.pop("source")
    assert given.pop("source")["kind"] == "image"
    assert given == packaged


def test_the_configuration_that_the_image_carries(tmp_path):
    (tmp_path / "bzImage").write_bytes(bzimage(carried(CONFIG)))
    kernel = binary.fetch({"file": str(tmp_path / "bzImage")}, tmp_path / "out")
    assert (tmp_path / "out" / "config").read_bytes() == CONFIG
    assert kernel["builtin"] == ["brd", "ext4"]
    assert "builtin_unknown" not in kernel
    with pytest.raises(ModuleMissing, match=r"no module btrfs, neither as a file nor built in\.$"):
        modules.load_order(kernel, ["btrfs"])


def test_without_a_configuration_what_is_built_in_is_not_known(built, tmp_path):
    kernel = binary.fetch({"file": built["file"]}, tmp_path / "out")
    assert kernel["config"] == {"file": None, "sha256": None}
    assert not (tmp_path / "out" / "config").exists()
    assert kernel["modules"] == {}
    with pytest.raises(ModuleMissing, match="whether it has that built in is not known: name its configuration"):
        modules.load_order(kernel, ["brd"])


def test_modules_builtin_alone_says_what_is_built_in(built, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\nkernel/block/a-b.ko\n")
    kernel = binary.fetch({"file": built["file"], "modules": str(tmp_path / "m")}, tmp_path / "out")
    assert kernel["builtin"] == ["a_b", "ext4"]
    assert modules.load_order(kernel, ["ext4"]) == []


def test_modules_gathered_in_one_folder(built, tmp_path):
    """Nothing but the files: the algorithms among them are found all the same."""
    made = {
        "btrfs": (packages.make_module(softdep="pre: xxhash64"), ("btrfs.ko", bytes)),
        "xxhash": (packages.make_module(alias=["xxhash64", "crypto-xxhash64"]), ("xxhash_generic.ko", bytes)),
    }
    kernel = binary.fetch({**built, "modules": str(install(tmp_path / "m", **made))}, tmp_path / "out")
    assert modules.load_order(kernel, ["btrfs"]) == ["xxhash_generic", "btrfs"]


def refused(spec, tmp_path, sentence):
    output = tmp_path / "out"
    with whole.folder(output) as fresh:
        (fresh / "old").touch()
    with pytest.raises(UserError, match=sentence):
        binary.fetch(spec, output)
    assert {path.name for path in output.iterdir()} == {"old", whole.MARKER}


def test_modules_of_another_version_are_refused_by_name(built, tmp_path):
    made = {"xfs": (packages.make_module("6.2.0-1-amd64"), ("xfs.ko", bytes))}
    spec = {**built, "modules": str(install(tmp_path / "m", **made))}
    refused(spec, tmp_path, rf"The module xfs is for another kernel than {RELEASE}: it says 6\.2\.0-1-amd64 SMP\.")


def test_a_folder_with_modules_of_other_versions_only(built, tmp_path):
    spec = {**built, "modules": str(tmp_path / "root")}
    install(tmp_path / "root" / "lib/modules/6.2.0", **MADE)
    refused(spec, tmp_path, rf"lib/modules has modules of 6\.2\.0, none of {RELEASE}")


def test_a_module_that_lies_there_twice(built, tmp_path):
    made = {"a": (packages.make_module(), ("a/xfs.ko", bytes)), "b": (packages.make_module(), ("b/xfs.ko", bytes))}
    refused({**built, "modules": str(install(tmp_path / "m", **made))}, tmp_path, r"xfs lies there twice: .*/a/.*/b/")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"#!/bin/sh\n", "bzImage: The kernel image is not a bzImage"),
        (packages.make_vmlinux(), "bzImage: The kernel image is not a bzImage"),
        (packages.make_bzimage(lzma.compress(b"x" * 99) + b"\0\0\0\0"), "bzImage: The kernel image's payload is not"),
        (packages.make_bzimage(b"\x02\x21\x4c\x18" + bytes(99), " "), "bzImage: The kernel image does not say its ver"),
        (None, "The kernel image .*bzImage can't be read: No such file"),
    ],
)
def test_a_file_that_is_no_kernel(tmp_path, content, sentence):
    if content is not None:
        (tmp_path / "bzImage").write_bytes(content)
    refused({"file": str(tmp_path / "bzImage")}, tmp_path, sentence)


def test_other_files_that_are_not_what_they_should_be(built, tmp_path):
    spec = {**built, "modules": str(tmp_path / "none")}
    with pytest.raises(UserError, match=r"folder of modules .*none is not there"):
        binary.fetch(spec, tmp_path / "out")
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match=r"none holds neither modules .* nor modules\.builtin"):
        binary.fetch(spec, tmp_path / "out")
    with pytest.raises(UserError, match="bzImage is no kernel configuration"):
        binary.fetch({**built, "config": built["file"]}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_wanted_module_has_its_option():
    assert set(modules.OPTIONS) == set(modules.WANTED)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("suite", ["bookworm", "trixie-backports"])
def test_the_files_of_a_real_package_are_the_same_kernel(tmp_path, suite):
    spec = {"suite": suite, "package": "linux-image-amd64"}
    packaged = debian.fetch(spec, tmp_path / "cache", tmp_path / "k.lock", tmp_path / "one")
    private = apt.private(spec, [suite], tmp_path / "cache")
    for _, path in apt.pinned(debian.key(spec), tmp_path / "k.lock", tmp_path / "cache", private, lambda _: []):
        with deb.contents(path) as tar:
            for member in filter(tarfile.TarInfo.isfile, tar.getmembers()):
                target = tmp_path / "root" / deb.installed_path(member.name, merged=False)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tar.extractfile(member).read())
    [file] = [path for path in (tmp_path / "root").rglob("vmlinuz*") if path.is_file()]
    [config] = [
        path for pattern in ("boot/config-*", "usr/lib/modules/*/config") for path in (tmp_path / "root").glob(pattern)
    ]
    given = binary.fetch(
        {"file": str(file), "modules": str(tmp_path / "root"), "config": str(config)}, tmp_path / "two"
    )
    assert given["digest"] == packaged["digest"]
    assert given["builtin"] == packaged["builtin"]
    # What the configuration alone would say agrees with the kernel's own list.
    by_config = modules.builtin_by(config.read_bytes()) - {"crc32c_generic", "crc32c_cryptoapi"}
    assert by_config == set(packaged["builtin"]) & set(modules.WANTED)
