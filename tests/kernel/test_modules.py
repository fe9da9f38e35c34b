import lzma
import shutil
import subprocess

import packages
import pytest
import zstandard

from fsexp.errors import UserError
from fsexp.kernel import ModuleMissing, modules


def test_info_of_a_module():
    module = packages.make_module(
        depends="libcrc32c,raid6-pq",
        alias=["fs-btrfs", "pci:v*"],
        softdep=["pre: crc32c xxhash64", "post: late pre: sha256"],
    )
    said = modules.info(module)
    assert said.depends == ["libcrc32c", "raid6_pq"]
    assert said.softdeps == ["crc32c", "xxhash64", "sha256"]
    assert said.aliases == ["fs-btrfs", "pci:v*"]
    assert said.vermagic == "6.1.0-1-amd64 SMP"


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
def test_info_of_a_compiled_object(tmp_path):
    (tmp_path / "m.c").write_text(
        'static const char a[] __attribute__((used, section(".modinfo"))) = "depends=x,y";\n'
        'static const char b[] __attribute__((used, section(".modinfo"))) = "alias=fs-z";\n'
    )
    subprocess.run(["gcc", "-c", "m.c", "-o", "m.ko"], cwd=tmp_path, check=True)
    said = modules.info((tmp_path / "m.ko").read_bytes())
    assert (said.depends, said.aliases) == (["x", "y"], ["fs-z"])


def test_no_modinfo_is_no_information():
    assert modules.info(packages.make_module().replace(b".modinfo", b".xxxinfo")) == modules.Info()


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(60)])
def test_what_is_no_module(data):
    with pytest.raises(UserError, match="not a 64-bit"):
        modules.info(data)


def test_a_cut_module_is_a_clear_error():
    with pytest.raises(UserError, match="damaged"):
        modules.info(packages.make_module()[:100])


@pytest.mark.parametrize("pack", [bytes, packages.sign])
@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".ko", bytes), (".ko.xz", lzma.compress), (".ko.zst", zstandard.ZstdCompressor().compress)],
)
def test_plain_module_has_no_compression_and_no_signature(pack, suffix, compress):
    module = packages.make_module()
    assert modules.plain(f"kernel/fs/a.b{suffix}", compress(pack(module))) == module


def test_a_damaged_signature_is_an_error():
    with pytest.raises(UserError, match="signature"):
        modules.without_signature(packages.sign(b"x", b"")[1:])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("kernel/drivers/md/dm-mod.ko", "dm_mod"),
        ("crc32c-intel.ko.xz", "crc32c_intel"),
        ("a/modules.dep", None),
        ("a/x.ko.sig", None),
    ],
)
def test_name_of(path, name):
    assert modules.name_of(path) == name


def offered(**files):
    """{"fs/ext4/ext4": modinfo, ...} as candidates."""
    return {
        modules.name_of(f"{path}.ko"): modules.Candidate(
            f"kernel/{path}.ko", lambda said=said: packages.make_module(**said)
        )
        for path, said in files.items()
    }


def crypto(name, *more):
    return {"alias": [name, f"crypto-{name}", *more]}


LIKE_6_1 = offered(
    **{
        "drivers/block/brd": {},
        "drivers/net/loud": {},
        "fs/btrfs/btrfs": {
            "depends": "libcrc32c,xor",
            "softdep": ["pre: xxhash64", "pre: sha256"],
            "alias": ["fs-btrfs", "devname:btrfs-*"],
        },
        "fs/xfs/xfs": {"depends": "libcrc32c", "alias": "fs-xfs"},
        "crypto/xor": {},
        "lib/libcrc32c": {},
        "crypto/crc32c_generic": crypto("crc32c"),
        "arch/x86/crypto/crc32c-intel": crypto("crc32c", "cpu:type:x86*"),
        "crypto/xxhash_generic": crypto("xxhash64"),
        "crypto/wp512": crypto("wp512"),
        "drivers/crypto/hardware": crypto("sha256"),
    }
)


def described(selection, builtin=()):
    return {
        "release": "6.1",
        "builtin": list(builtin),
        "modules": {
            name: {"depends": m.depends, "softdeps": m.softdeps, "aliases": m.aliases}
            for name, m in selection.modules.items()
        },
    }


@pytest.fixture
def kernel():
    return described(modules.select(LIKE_6_1, {"sha256_generic"}), {"sha256_generic"})


def test_select_keeps_what_is_wanted_and_its_needs(kernel):
    assert sorted(kernel["modules"]) == [
        "brd", "btrfs", "crc32c_generic", "crc32c_intel", "libcrc32c", "xfs", "xor", "xxhash_generic",
    ]  # fmt: skip
    assert kernel["modules"]["btrfs"]["softdeps"] == ["xxhash_generic"]  # no driver for sha256
    assert kernel["modules"]["btrfs"]["aliases"] == ["fs-btrfs"]  # no patterns


def test_select_reports_what_is_lacking():
    lacking = modules.select(LIKE_6_1, {"ext4"}).lacking
    assert "f2fs" in lacking
    assert not {"ext4", "brd", "crc32c_intel"} & set(lacking)


def test_select_needs_the_dependencies():
    with pytest.raises(ModuleMissing, match="no module absent"):
        modules.select(offered(**{"fs/xfs/xfs": {"depends": "absent"}}), set())


def test_accelerated_checksums_come_before_their_users(kernel):
    order = modules.load_order(kernel, ["brd", "xfs"])
    assert order == ["crc32c_intel", "crc32c_generic", "brd", "libcrc32c", "xfs"]


def test_load_order_has_needs_first_and_nothing_twice(kernel):
    order = modules.load_order(kernel, ["btrfs", "xfs", "btrfs"])
    assert len(order) == len(set(order))
    for name in order:
        for other in kernel["modules"][name]["depends"] + kernel["modules"][name]["softdeps"]:
            assert order.index(other) < order.index(name)


def test_what_uses_no_checksum_loads_alone(kernel):
    assert modules.load_order(kernel, ["brd"]) == ["brd"]


def test_builtin_names_are_left_out(kernel):
    assert modules.load_order(kernel, ["sha256-generic", "brd"]) == ["brd"]


def test_both_spellings_are_understood(kernel):
    assert modules.load_order(kernel, ["crc32c-intel"]) == ["crc32c_intel"]


def test_an_unknown_module_is_named(kernel):
    with pytest.raises(ModuleMissing, match=r"6.1 has no module zfs") as caught:
        modules.load_order(kernel, ["zfs"])
    assert caught.value.name == "zfs"


def test_a_circle_of_soft_dependencies_ends():
    kernel = {"builtin": [], "modules": {n: {"depends": [], "softdeps": [o], "aliases": []} for n, o in ("ab", "ba")}}
    assert modules.load_order(kernel, ["a"]) == ["b", "a"]


def test_aliases_give_load_orders(kernel):
    table = modules.aliases(kernel, ["btrfs"])
    assert table["crypto-crc32c"] == ["crc32c_intel", "crc32c_generic"]
    assert table["crypto-xxhash64"] == ["xxhash_generic"]
    assert table["fs-btrfs"] == modules.load_order(kernel, ["btrfs"]) == table["btrfs"]
    assert table["crc32c-intel"] == table["crc32c_intel"]
    assert "fs-xfs" not in table
    assert list(table) == sorted(table)
