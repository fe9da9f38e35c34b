import re

from fsexp.kernel import option

# Lines as Linux 6.1 and 7.3 of Debian have them.
OLD = """\
#
# Automatically generated file; DO NOT EDIT.
# Linux/x86 6.1.192 Kernel Configuration
#
CONFIG_CC_VERSION_TEXT="gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0"
# CONFIG_COMPILE_TEST is not set
CONFIG_HZ=250
CONFIG_PREEMPT_VOLUNTARY=y
# CONFIG_UBSAN is not set
CONFIG_RETPOLINE=y
CONFIG_EXT4_FS=m
# CONFIG_BTRFS_DEBUG is not set
CONFIG_DEFAULT_HOSTNAME="(none)"
CONFIG_SLUB=y
"""
NEW = """\
CONFIG_CC_VERSION_TEXT="x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0"
CONFIG_HZ=250
CONFIG_PREEMPT_LAZY=y
CONFIG_UBSAN=y
CONFIG_MITIGATION_RETPOLINE=y
CONFIG_EXT4_FS=m
CONFIG_DEFAULT_HOSTNAME="(none)"
CONFIG_SLUB=y
"""


def read(folder, text):
    path = folder / "config"
    path.write_text(text)
    return option.read(path)


def test_a_configuration(tmp_path):
    found = read(tmp_path, OLD)
    assert found["CC_VERSION_TEXT"] == "gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0"
    assert (found["HZ"], found["UBSAN"], found["EXT4_FS"]) == ("250", "n", "m")
    assert len(found) == 10
    assert option.read(tmp_path / "absent") is None


def test_what_differs(tmp_path):
    found = option.differences([read(tmp_path, OLD), read(tmp_path, NEW)])
    # Not: HZ, EXT4_FS and SLUB (the same), RETPOLINE (renamed), BTRFS_DEBUG (off, and not there).
    assert [(row.option.names[0], row.values) for row in found.rows] == [
        ("PREEMPT_VOLUNTARY", ("y", "not there")),
        ("PREEMPT_LAZY", ("not there", "y")),
        ("UBSAN", ("n", "y")),
    ]
    # The compiler's text, three rows, RETPOLINE by either name; COMPILE_TEST and BTRFS_DEBUG are off or not there.
    assert (found.options, found.differing, found.absent) == (12, 6, 2)


def test_equal_configurations(tmp_path):
    found = option.differences([read(tmp_path, OLD)] * 3)
    assert found == option.Differences((), 10, 0, 0)


def test_the_options_that_matter():
    names = [name for one in option.MATTERS for name in one.names]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]+", name) for name in names)
    assert all(one.reason and not one.reason.endswith(".") for one in option.MATTERS)
    wanted = """HZ PREEMPT_NONE SMP CC_OPTIMIZE_FOR_SIZE INIT_STACK_ALL_ZERO INIT_ON_ALLOC_DEFAULT_ON SLUB SLAB
    SLUB_DEBUG STACKPROTECTOR_STRONG FORTIFY_SOURCE HARDENED_USERCOPY RETPOLINE CPU_MITIGATIONS PAGE_TABLE_ISOLATION
    SECURITY LSM FTRACE FUNCTION_TRACER KASAN DEBUG_LIST CGROUPS MEMCG FS_ENCRYPTION FS_VERITY QUOTA EXT4_FS_POSIX_ACL
    EXT4_FS_SECURITY BTRFS_DEBUG XFS_DEBUG BLK_CGROUP TRANSPARENT_HUGEPAGE RANDOMIZE_BASE"""
    assert set(wanted.split()) <= set(names)
