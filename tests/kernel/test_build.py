"""Building: what a build is known by, what old trees are given, and what is said when one fails."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import stub
import yaml

from fsexp.errors import BuildFailed, MachineError, UserError
from fsexp.kernel import build, source
from fsexp.kernel.version import holds

COMMON = build.Recipe(None, (), "gcc")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def tree(folder, cache, **made):
    stub.make(folder, **made)
    return source.obtain({"kind": "tree", "path": str(folder)}, cache, folder.parent / "study" / "kernels.lock")


def described(built):
    return yaml.safe_load((built / "built.json").read_text())


def test_image_configuration_and_modules_are_kept(tmp_path, cache):
    built = build.build(tree(tmp_path / "linux", cache), COMMON, cache, 2)
    assert (built / "bzImage").read_bytes() == (tmp_path / "linux" / "image").read_bytes()
    # Of the common configuration the stub knows these three, and it has a module of its own as 2.6.39 does.
    assert (built / "config").read_text().split() == [
        "CONFIG_64BIT=y", "CONFIG_SMP=y", "CONFIG_EXT4_FS=y", "CONFIG_SCSI_WAIT_SCAN=m",
    ]  # fmt: skip
    assert [path.name for path in (built / "modules").rglob("*.ko")] == ["scsi_wait_scan.ko"]
    assert (built / "modules.builtin").read_text() == "kernel/fs/ext4/ext4.ko\n"
    assert described(built)["version"] == "6.1.2"


def test_what_the_kernel_lacks_of_the_configuration_is_listed(tmp_path, cache):
    lacking = described(build.build(tree(tmp_path / "linux", cache), COMMON, cache, 1))["options_lacking"]
    asked = {line.split("=")[0] for line in build.COMMON.read_text().splitlines() if line.startswith("CONFIG_")}
    assert set(lacking) == asked - {"CONFIG_64BIT", "CONFIG_SMP", "CONFIG_EXT4_FS"}


@pytest.mark.parametrize(
    ("asked", "config", "expected"),
    [
        ("CONFIG_A=y", "CONFIG_A=y", []),
        ("CONFIG_A=y", "CONFIG_A=m", ["CONFIG_A"]),
        ("CONFIG_A=y", "# CONFIG_A is not set", ["CONFIG_A"]),
        ("# CONFIG_A is not set", "CONFIG_A=y", ["CONFIG_A"]),
        ("# CONFIG_A is not set", "", []),
        ("CONFIG_A=y\n# CONFIG_A is not set", "", []),  # the later line counts
        ('CONFIG_N="x y"', 'CONFIG_N="x y"', []),
    ],
)
def test_lacking(asked, config, expected):
    assert build.lacking([asked], config) == expected


def test_the_same_inputs_are_built_once(tmp_path, cache, monkeypatch):
    found = tree(tmp_path / "linux", cache)
    first = build.build(found, COMMON, cache, 1)
    monkeypatch.setattr(build, "_make", lambda *_: pytest.fail("it was built again"))
    assert build.build(found, COMMON, cache, 2) == first


def _exchange(built):
    (built / "bzImage").write_bytes(b"another")


def _append(built):
    (built / "config").write_text("CONFIG_XFS_FS=y\n")


def _cut(built):
    (built / "built.json").write_text("{")


def _remove(built):
    (built / "bzImage").unlink()


@pytest.mark.parametrize("damage", [_exchange, _append, _cut, _remove])
def test_a_kept_build_that_is_damaged_is_built_again(tmp_path, cache, damage):
    found = tree(tmp_path / "linux", cache)
    built = build.build(found, COMMON, cache, 1)
    before = {path.name: path.read_bytes() for path in built.iterdir() if path.is_file()}
    damage(built)
    assert build.build(found, COMMON, cache, 1) == built
    after = {path.name: path.read_bytes() for path in built.iterdir() if path.is_file()}
    assert {name for name in before if after[name] != before[name]} <= {"build.log", "built.json"}


def test_a_relative_path_of_a_compiler_is_the_callers(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(fake_gcc(tmp_path, "12.2.0").parent)
    build.build(tree(tmp_path / "linux", cache), build.Recipe(None, (), "./gcc-12.2.0"), cache, 1)


def test_a_tree_that_cannot_be_configured_says_why(tmp_path, cache):
    folder = stub.make(tmp_path / "linux")
    makefile = (folder / "Makefile").read_text()
    broken = makefile.replace("\tgrep -Fxf known $(KCONFIG_ALLCONFIG) > .config;", "\tno-such-program; exit 1;")
    (folder / "Makefile").write_text(broken)
    found = source.obtain({"kind": "tree", "path": str(folder)}, cache, tmp_path / "study" / "kernels.lock")
    with pytest.raises(BuildFailed, match=r"can't be configured: .*no-such-program: .*not found.*; the log is /"):
        build.build(found, COMMON, cache, 1)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"CONFIG_OWN=y\nCONFIG_OTHER y\n", "own.config, line 2: 'CONFIG_OTHER y' sets no option"),
        (b"garbage\n", "own.config, line 1: 'garbage' sets no option"),
        (b"\xff\n", "own.config is not UTF-8 text"),
        (None, "own.config can't be read: No such file or directory$"),
    ],
)
def test_a_fragment_that_is_none(tmp_path, cache, content, sentence):
    fragment = tmp_path / "own.config"
    if content is not None:
        fragment.write_bytes(content)
    with pytest.raises(UserError, match=sentence):
        build.build(tree(tmp_path / "linux", cache), build.Recipe(None, (fragment,), "gcc"), cache, 1)


def test_another_tree_fragment_or_compiler_is_another_build(tmp_path, cache):
    found = tree(tmp_path / "linux", cache)
    fragment = tmp_path / "own.config"
    fragment.write_text("CONFIG_OWN=y\n")
    wrapper = fake_gcc(tmp_path, "12.2.0")
    places = [
        build.build(found, COMMON, cache, 1),
        build.build(found, build.Recipe(None, (fragment,), "gcc"), cache, 1),
        build.build(found, build.Recipe(None, (), str(wrapper)), cache, 1),
        build.build(tree(tmp_path / "other", cache, main="int other;\n"), COMMON, cache, 1),
    ]
    assert len(set(places)) == 4
    assert "CONFIG_OWN=y" in (places[1] / "config").read_text()


def test_a_configuration_of_ones_own_replaces_the_common_one(tmp_path, cache):
    own = tmp_path / "my.config"
    own.write_text("CONFIG_OWN=y\nCONFIG_GONE=y\n")
    built = build.build(tree(tmp_path / "linux", cache), build.Recipe(own, (), "gcc"), cache, 1)
    assert (built / "config").read_text() == "CONFIG_OWN=y\n"
    assert described(built)["options_lacking"] == ["CONFIG_GONE"]


def test_the_callers_environment_does_not_reach_make(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("CFLAGS", "-DEVIL")
    monkeypatch.setenv("MY_OWN", "1")
    monkeypatch.setenv("KBUILD_BUILD_USER", "me")
    folder = stub.make(tmp_path / "linux")
    makefile = (folder / "Makefile").read_text()
    (folder / "Makefile").write_text(makefile.replace("cp image", "cp environment image && cp image"))
    found = source.obtain({"kind": "tree", "path": str(folder)}, cache, tmp_path / "study" / "kernels.lock")
    built = build.build(found, COMMON, cache, 1)
    lines = (built / "bzImage").read_text().split("\n")
    assert "KBUILD_BUILD_USER=fsexp" in lines and "ARCH=x86_64" in lines
    assert not [line for line in lines if line.startswith(("CFLAGS", "MY_"))]


@pytest.mark.parametrize("name", ["a study", "Übung", "a:b", "plain"])
def test_make_sees_no_folder_that_it_cannot_take(tmp_path, name):
    folder = stub.make(tmp_path / "linux")
    makefile = (folder / "Makefile").read_text()
    (folder / "Makefile").write_text(makefile.replace("cp image", "pwd > image && cp image"))
    cache = tmp_path / name / "cache"
    found = source.obtain({"kind": "tree", "path": str(folder)}, cache, tmp_path / "study" / "kernels.lock")
    place = (build.build(found, COMMON, cache, 1) / "bzImage").read_text().strip()
    assert place.isascii() and not set(place) & set(" :")
    assert not Path(place).exists()


def test_a_tree_that_does_not_build_says_the_compilers_error(tmp_path, cache):
    found = tree(tmp_path / "linux", cache, main="int f(void) { return missing_symbol; }\n")
    with pytest.raises(BuildFailed, match=r"Linux 6\.1\.2 does not build: main\.c:1.*'missing_symbol'") as caught:
        build.build(found, COMMON, cache, 1)
    assert caught.value.outcome == "build-failed"
    log = Path(str(caught.value).rsplit("the log is ", 1)[1])
    assert "missing_symbol" in log.read_text()
    assert not [path for path in log.parent.iterdir() if path.name.startswith(".build")]


def test_a_compiler_that_is_too_new_is_named_with_the_one_that_works(tmp_path, cache):
    found = tree(tmp_path / "linux", cache, name="3.2.7", main="#error too new\n")
    with pytest.raises(BuildFailed, match=r"the compiler is gcc 99, .* up to gcc 12: .* `compiler: gcc-12`"):
        build.build(found, build.Recipe(None, (), str(fake_gcc(tmp_path, "99.1.0"))), cache, 1)


def fake_gcc(folder, version):
    """The real compiler under another version."""
    path = folder / f"gcc-{version}"
    path.write_text(
        f'#!/bin/sh\ncase $1 in\n--version) echo "gcc {version} wrapped";;\n'
        f'-dumpfullversion) echo {version};;\n*) exec {shutil.which("gcc")} "$@";;\nesac\n'
    )
    path.chmod(0o755)
    return path


def test_what_is_no_gcc_is_refused(tmp_path):
    other = tmp_path / "clang"
    other.write_text('#!/bin/sh\n[ "$1" = --version ] && echo clang version 14\n')
    other.chmod(0o755)
    with pytest.raises(UserError, match=r"is not gcc .clang version 14."):
        build.find_tools(str(other))


def test_missing_programs_are_named_with_their_packages(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"gcc \(the compiler\), .*bc \(Debian's package bc\)"):
        build.find_tools("gcc")


def test_a_killed_make_is_the_machines_fault(tmp_path, cache):
    folder = stub.make(tmp_path / "linux")
    makefile = (folder / "Makefile").read_text()
    (folder / "Makefile").write_text(makefile.replace("\t$(CC)", "\tkill -KILL $$PPID; sleep 1; $(CC)"))
    found = source.obtain({"kind": "tree", "path": str(folder)}, cache, tmp_path / "study" / "kernels.lock")
    with pytest.raises(MachineError, match="killed by signal 9"):
        build.build(found, COMMON, cache, 1)


def test_an_interrupted_build_leaves_no_process_and_no_folder(tmp_path, cache):
    folder = stub.make(tmp_path / "linux")
    makefile = (folder / "Makefile").read_text()
    (folder / "Makefile").write_text(makefile.replace("\t$(CC)", f"\ttouch {tmp_path}/begun; sleep 4321; $(CC)"))
    program = (
        "import signal, sys\nfrom pathlib import Path\nfrom fsexp.kernel import build, source\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))\n"
        f"cache = Path({str(cache)!r})\n"
        f"found = source.obtain({{'kind': 'tree', 'path': {str(folder)!r}}}, cache, Path('s/k'))\n"
        "build.build(found, build.Recipe(None, (), 'gcc'), cache, 1)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130
    assert not [pid for pid in Path("/proc").iterdir() if pid.name.isdigit() and b"4321" in command_line(pid)]
    assert not [path for path in (cache / "kernels").iterdir() if path.name.startswith(".build")]


def command_line(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


# What Linux 2.6.39.4 and 3.2 needed with gcc 12.2, by trial; current kernels need nothing.
FLAGS = ["compiler-header", "no-pie", "no-sse-in-decompressor"]
EDITS = ["perl-defined-array", "acpi-section"]
OLDEST = ["xfs-leaf", "compile-time", "compile-by", "compile-host", "compile-domain"]


@pytest.mark.parametrize(
    ("version", "gcc", "expected"),
    [
        ((2, 6, 39, 4), (12, 2, 0), [*FLAGS, *EDITS, *OLDEST, "initramfs-time"]),
        ((3, 2, 7), (12, 2, 0), FLAGS + EDITS),
        ((2, 6, 39, 4), (4, 9, 2), ["perl-defined-array", *OLDEST[1:], "initramfs-time"]),
        ((4, 4), (12, 2, 0), ["no-pie", "no-sse-in-decompressor"]),
        ((6, 1), (12, 2, 0), []),
        ((7, 3, 4), (14, 2, 0), []),
    ],
)
def test_what_a_tree_needs(version, gcc, expected):
    assert [row["name"] for row in build.adaptations(version, gcc)] == expected


def test_an_old_tree_is_adapted_and_says_how(tmp_path, cache):
    folder = stub.make(tmp_path / "linux", name="2.6.39.4")
    makefile = (folder / "Makefile").read_text()
    image = "include/linux/compiler-gcc*.h kernel/timeconst.pl include/acpi/acpiosxf.h"
    (folder / "Makefile").write_text(makefile.replace("cp image ", f"cat {image} > image && cp image "))
    found = source.obtain({"kind": "tree", "path": str(folder)}, cache, tmp_path / "study" / "kernels.lock")
    built = build.build(found, COMMON, cache, 1)
    text = (built / "bzImage").read_text()
    assert "if (!@val)" in text and "__init acpi_os_initialize" in text and "#define __noclone" in text
    # The stub has no scripts/mkcompile_h, so these rows found nothing to change.
    assert described(built)["adaptations"] == FLAGS + EDITS
    assert "-fno-pie -mno-sse" in (built / "build.log").read_text()
    assert (folder / "kernel/timeconst.pl").read_text() == "if (!defined(@val)) {\n"


def test_the_tables_are_whole():
    rows = yaml.safe_load((build.FOLDER / "adaptations.yaml").read_text())
    assert len({row["name"] for row in rows}) == len(rows)
    for row in rows:
        assert len(row["why"]) > 10 and len(set(row) & {"cc", "add", "edit"}) == 1
        holds(row["kernels"], (1,)), holds(row.get("gcc", ""), (1,))
        if "add" in row:
            assert (build.FOLDER / row["add"]["from"]).exists()


@pytest.mark.parametrize(
    ("range_", "version", "expected"),
    [
        ("< 4.2", (4, 1, 52), True),
        ("< 4.2", (4, 2), False),
        ("< 4.2", (4, 2, 0), False),
        (">= 3.0, < 3.9", (3, 8, 13), True),
        (">= 3.0, < 3.9", (2, 6, 39, 4), False),
        (">= 5", (12, 2, 0), True),
        ("", (1,), True),
    ],
)
def test_ranges(range_, version, expected):
    assert holds(range_, version) is expected
