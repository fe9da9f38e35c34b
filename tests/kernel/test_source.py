import bz2
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import packages
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsexp import lock
from fsexp.errors import MachineError, UserError
from fsexp.kernel import git, patch, source, tree

MAKEFILE = "VERSION = 3\nPATCHLEVEL = 2\nSUBLEVEL = 0\nEXTRAVERSION =\nNAME = Saber-toothed Squirrel\n"
TREE = {
    "Makefile": MAKEFILE,
    "Kconfig": 'mainmenu "Linux"\n',
    "fs/open.c": "int one;\nint two;\nint three;\n",
    "scripts/run": ("program", "#!/bin/sh\n"),
    "arch/x86/boot/dts/a.dts": ("link", "../../../../Kconfig"),
    "fs/\udcff name.c": "bytes that are no text\n",
}
PATCH = b"""From: somebody
Subject: one more

--- a/fs/open.c
+++ b/fs/open.c
@@ -1,3 +1,3 @@
 int one;
-int two;
+int zwei;
 int three;
"""
TO_3_2_7 = b"""diff --git a/Makefile b/Makefile
index 1234567..89abcde 100644
--- a/Makefile
+++ b/Makefile
@@ -1,5 +1,5 @@
 VERSION = 3
 PATCHLEVEL = 2
-SUBLEVEL = 0
+SUBLEVEL = 7
 EXTRAVERSION =
 NAME = Saber-toothed Squirrel
diff --git a/fs/new.c b/fs/new.c
new file mode 100755
index 0000000..1111111
--- /dev/null
+++ b/fs/new.c
@@ -0,0 +1 @@
+int new;
"""


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


class Place:
    """A study's folder with what lies beside it."""

    def __init__(self, path):
        self.path, self.cache, self.lock = path, path / "study" / "cache", path / "study" / "kernels.lock"

    def obtain(self, leave_out=(), **spec):
        return source.obtain(spec, self.cache, self.lock, leave_out)

    def placed(self, leave_out=(), **spec):
        made = self.obtain(leave_out, **spec)
        folder = Path(self.path / f"out{len(list(self.path.iterdir()))}")
        folder.mkdir()
        made.place(folder)
        return read(folder)

    def folder(self, files=TREE, name="linux"):
        return write(self.path / name, files)

    def tarball(self, files=TREE, name="linux-3.2.tar.xz", top="linux-3.2/", raw=None):
        data = make_tar({top + path: content for path, content in files.items()}) if raw is None else raw
        path = self.path / name
        path.write_bytes(packages.COMPRESS[path.suffix if path.suffix != ".tar" else ""](data))
        return self.row(path)

    def row(self, path, data=None):
        if data is not None:
            (self.path / path).write_bytes(data)
        path = self.path / path
        return {"url": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case ("link", target):
                path.symlink_to(target)
            case ("program", text):
                path.write_text(text)
                path.chmod(0o700)
            case bytes():
                path.write_bytes(content)
            case _:
                path.write_text(content)
    return folder


def read(folder):
    """What a folder holds, as TREE is written; empty folders do not count."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_file():
            text, mode = path.read_bytes().decode(), path.stat().st_mode & 0o777
            assert mode in (0o644, 0o755)
            found[name] = ("program", text) if mode == 0o755 else text
    return found


def make_tar(files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            data = b""
            match content:
                case ("link", target):
                    member.type, member.linkname = tarfile.SYMTYPE, target
                case ("hard", target):
                    member.type, member.linkname = tarfile.LNKTYPE, target
                case ("device", _):
                    member.type = tarfile.CHRTYPE
                case ("program", text):
                    member.mode, data = 0o775, text.encode()
                case _:
                    data = content.encode()
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def run_git(folder, *arguments, **environment):
    named = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=own | named | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def commit(folder, message="all"):
    run_git(folder, "add", "--all", "--force")
    run_git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return run_git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(place):
    folder = place.folder()
    run_git(folder, "init", "--quiet", "-b", "main")
    commit(folder)
    return folder


# -- tarballs


@pytest.mark.parametrize("compression", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_a_tarball(place, compression):
    row = place.tarball(name=f"linux.tar{compression}")
    made = place.obtain(kind="tarball", **row)
    assert made.identity == {"kind": "tarball", "sha256": row["sha256"]}
    assert made.release == "3.2.0"
    assert place.placed(kind="tarball", **row) == TREE
    assert lock.read(place.lock) == {f"tarball:{row['url']}": {"files": [row]}}


@pytest.mark.parametrize("top", ["", "./", "./linux/", "any name/"])
def test_the_top_folder_goes_whatever_its_name(place, top):
    assert place.placed(kind="tarball", **place.tarball(top=top)) == TREE


def test_what_lies_beside_the_top_folder_is_left_out(place):
    files = {f"linux/{name}": content for name, content in TREE.items()} | {"other/x": "1", "notes": "2"}
    assert place.placed(kind="tarball", **place.tarball(files, top="")) == TREE


@pytest.mark.parametrize(
    "files",
    [
        {"README": "no kernel"},
        {"Makefile": MAKEFILE},
        {"Makefile": "VERSION = 1.2\nall:\n", "Kconfig": ""},
        {"deep/er/Makefile": MAKEFILE, "deep/er/Kconfig": ""},
        {"a/Makefile": MAKEFILE, "b/Kconfig": ""},
    ],
)
def test_a_tarball_of_something_else(place, files):
    with pytest.raises(UserError, match=r"linux-3\.2\.tar\.xz holds no kernel"):
        place.obtain(kind="tarball", **place.tarball(files, top=""))


def test_a_tarball_of_a_kernel_without_kconfig_at_the_top(place):
    files = {**TREE, "init/Kconfig": ""}
    del files["Kconfig"], files["arch/x86/boot/dts/a.dts"]
    assert place.placed(kind="tarball", **place.tarball(files)) == files


def test_hard_links_become_files(place):
    more = {"a.c": ("hard", "linux-3.2/fs/open.c"), "b": ("hard", "linux-3.2/scripts/run")}
    expected = {"a.c": TREE["fs/open.c"], "b": TREE["scripts/run"]}
    assert place.placed(kind="tarball", **place.tarball(TREE | more)) == TREE | expected


def test_of_two_members_of_a_name_the_later_stays(place):
    first = make_tar({"l/Makefile": MAKEFILE, "l/Kconfig": "", "l/a": ("link", "b"), "l/c": "file"})
    second = make_tar({"l/a": "file", "l/c": ("link", "a")})
    row = place.tarball(raw=first.rstrip(b"\0") + b"\0" * (-len(first.rstrip(b"\0")) % 512) + second)
    assert place.placed(kind="tarball", **row) == {
        "Makefile": MAKEFILE, "Kconfig": "", "a": "file", "c": ("link", "a"),
    }  # fmt: skip


ESCAPES = {
    "upwards": {"l/../../x": "1"},
    "within and upwards": {"l/fs/../../../x": "1"},
    "absolute": {"/tmp/fsexp-x": "1"},
    "absolute link": {"l/x": ("link", "/etc/passwd")},
    "link upwards": {"l/x": ("link", "../outside")},
    "link to the folder above": {"l/x": ("link", "..")},
    "file through a link": {"l/x": ("link", "/tmp"), "l/x/fsexp-x": "1"},
    "link through a link": {"l/x": ("link", ".."), "l/x/y": ("link", "../..")},
    "link by a link": {"l/a/b": ("link", "."), "l/c": ("link", "a/b/../../../outside")},
    "hard link to the outside": {"l/x": ("hard", "/etc/passwd")},
    "hard link upwards": {"l/x": ("hard", "l/../../etc/passwd")},
    "hard link to a link": {"l/x": ("link", "Kconfig"), "l/y": ("hard", "l/x")},
    "device": {"l/null": ("device", "")},
    "file, then a folder": {"l/x": "1", "l/x/y": "2"},
    "folder, then a file": {"l/x/y": "2", "l/x": "1"},
    "folder, then a link": {"l/x/y": "2", "l/x": ("link", "Kconfig")},
}


@pytest.mark.parametrize("files", ESCAPES.values(), ids=ESCAPES)
def test_nothing_leads_out_of_a_tarball(place, files):
    inside = {f"l/{name}": content for name, content in TREE.items()}
    row = place.tarball(inside | files, top="")
    made = place.obtain(kind="tarball", **row)
    folder = place.path / "deep" / "out"
    folder.mkdir(parents=True)
    with pytest.raises(UserError, match=r"linux-3\.2\.tar\.xz"):
        made.place(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["out"]
    assert not Path("/tmp/fsexp-x").exists()


_PARTS = st.lists(st.sampled_from(["a", "b", "..", ".", "", "/"]), min_size=1, max_size=5).map("/".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(_PARTS, st.sampled_from(["file", "link", "same"]), _PARTS), min_size=1, max_size=6))
def test_whatever_the_entries_nothing_is_written_outside(tmp_path, entries):
    top = tmp_path / "w"
    folder = top / "x" / "tree"
    shutil.rmtree(top, ignore_errors=True)
    folder.mkdir(parents=True)
    (top / "a").write_text("outside")
    try:
        tree.write([tree.Entry(path, kind, target.encode()) for path, kind, target in entries], folder, "it")
    except (UserError, MachineError):
        pass
    else:
        for path in folder.rglob("*"):
            assert Path(os.path.realpath(path)).is_relative_to(folder)
    assert sorted(path.name for path in top.rglob("*") if not path.is_relative_to(folder)) == ["a", "x"]
    assert (top / "a").read_text() == "outside"


@pytest.mark.parametrize("compression", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_a_damaged_tarball(place, compression):
    row = place.tarball(files=TREE | {"fs/big": os.urandom(50_000).hex()}, name=f"l.tar{compression}")
    path = Path(row["url"])
    data = bytearray(path.read_bytes())
    for damaged in (data[: len(data) // 2], data[: len(data) // 2] + bytes(100) + data[len(data) // 2 + 100 :]):
        if not compression and len(damaged) == len(data):
            continue  # a tar has no sums of its files
        row = place.row("l.tar" + compression, bytes(damaged))
        with pytest.raises(UserError, match=r"l\.tar.* damaged"):
            place.placed(kind="tarball", **row)


def test_a_tarball_with_another_digest(place):
    row = place.tarball() | {"sha256": "0" * 64}
    with pytest.raises(UserError, match="its sha256 is"):
        place.obtain(kind="tarball", **row)


# -- releases that are shipped


@pytest.fixture
def shipped(place, monkeypatch):
    """3.2 in two compressions and 3.2.7 as a patch on top, under addresses that nothing answers."""
    rows = {name: place.tarball(name=name) for name in ("linux-3.2.tar.xz", "linux-3.2.tar.bz2")}
    rows["patch-3.2.7.bz2"] = place.row("patch-3.2.7.bz2", bz2.compress(TO_3_2_7))
    text = ["upstream: https://nowhere.invalid/", "releases:"]
    for release, patches in (("3.2", []), ("3.2.7", ["patch-3.2.7.bz2"])):
        text += [f'  "{release}":']
        for kind, names in (("tarballs", ["linux-3.2.tar.xz", "linux-3.2.tar.bz2"]), ("patches", patches)):
            text += [f"    {kind}:"] if names else []
            for name in names:
                text += [f"      - {{file: v3.x/{name}, sha256: {rows[name]['sha256']}, source: here}}"]
    table = place.path / "tarballs.yaml"
    table.write_text("\n".join(text) + "\n")
    monkeypatch.setattr(source, "TARBALLS", table)
    (place.cache / "downloads").mkdir(parents=True)

    def have(*names):
        for name in names:
            shutil.copy(place.path / name, place.cache / "downloads" / name)
        return [rows[name]["sha256"] for name in names]

    return have


def test_a_release_is_a_tarball_and_a_patch(place, shipped):
    tarball, patched = shipped("linux-3.2.tar.bz2", "patch-3.2.7.bz2")
    made = place.obtain(kind="tarball", release="3.2.7")
    assert made.identity == {"kind": "tarball", "sha256": tarball, "patches": [patched]}
    assert made.release == "3.2.7"
    expected = TREE | {
        "Makefile": MAKEFILE.replace("SUBLEVEL = 0", "SUBLEVEL = 7"),
        "fs/new.c": ("program", "int new;\n"),
    }
    assert place.placed(kind="tarball", release="3.2.7") == expected
    assert lock.read(place.lock)["tarball:3.2.7"]["files"] == [
        {"url": "https://nowhere.invalid/v3.x/linux-3.2.tar.bz2", "sha256": tarball},
        {"url": "https://nowhere.invalid/v3.x/patch-3.2.7.bz2", "sha256": patched},
    ]


def test_the_lock_file_decides_between_compressions(place, shipped):
    (packed,) = shipped("linux-3.2.tar.bz2")
    assert place.obtain(kind="tarball", release="3.2").identity["sha256"] == packed
    shipped("linux-3.2.tar.xz")
    assert place.obtain(kind="tarball", release="3.2").identity["sha256"] == packed
    place.lock.unlink()
    assert place.obtain(kind="tarball", release="3.2").identity["sha256"] != packed


def test_a_release_that_is_not_known(place, shipped):
    with pytest.raises(UserError, match=r"3\.2\.8 is not known.*did you mean 3\.2\.7"):
        place.obtain(kind="tarball", release="3.2.8")


def test_every_shipped_release_says_whose_digest_it_is():
    releases = source.releases()
    # From crosstool-ng's and opendreambox's files, copied here by hand.
    assert releases["2.6.39.4"]["tarballs"][0] == {
        "url": "https://cdn.kernel.org/pub/linux/kernel/v2.6/linux-2.6.39.4.tar.xz",
        "sha256": "63c89dd833a67d21f4a0002b92826e3a5380153097d9ec29d62a884ca5310105",
        "source": "crosstool-ng b3038a0a4107, linux/2.6.39.4/chksum",
    }
    assert [row["url"].rpartition("/")[2] for row in releases["3.2.7"]["patches"]] == ["patch-3.2.7.bz2"]
    rows = [row for entry in releases.values() for kind in entry.values() for row in kind]
    for row in rows:
        assert len(bytes.fromhex(row["sha256"])) == 32
        assert row["source"]
    by_url = {row["url"]: row["sha256"] for row in rows}
    assert len(by_url) == len(set(by_url.values())) == len({tuple(sorted(row.items())) for row in rows})


# -- patches


@pytest.mark.parametrize("compression", ["", ".gz", ".bz2", ".xz"])
def test_patches_in_their_order(place, compression):
    second = PATCH.replace(b"int zwei", b"int deux").replace(b"int two", b"int zwei")
    rows = [
        place.row(f"{n}.patch{compression}", packages.COMPRESS[compression](p)) for n, p in enumerate((PATCH, second))
    ]
    row = place.tarball()
    made = place.obtain(kind="tarball", **row, patches=rows)
    assert made.identity["patches"] == [patch["sha256"] for patch in rows]
    assert made.release == "3.2.0"
    files = place.placed(kind="tarball", **row, patches=rows)
    assert files == TREE | {"fs/open.c": "int one;\nint deux;\nint three;\n"}
    with pytest.raises(UserError, match=rf"The patch 1\.patch{compression} does not apply: hunk 1 for fs/open\.c"):
        place.placed(kind="tarball", **row, patches=rows[::-1])


def test_a_patched_folder_is_not_written_to(place):
    folder = place.folder()
    row = place.row("1.patch", PATCH)
    assert (
        place.placed(kind="tree", path=str(folder), patches=[row])["fs/open.c"] == "int one;\nint zwei;\nint three;\n"
    )
    assert (folder / "fs/open.c").read_text() == TREE["fs/open.c"]


def test_a_patch_of_the_makefile_changes_the_release(place):
    assert place.obtain(kind="tarball", **place.tarball(), patches=[place.row("p", TO_3_2_7)]).release is None


BAD_PATCHES = {
    "empty": (b"", "changes nothing"),
    "words": (b"Dear all,\nno patch here.\n", "changes nothing"),
    "no such file": (PATCH.replace(b"open.c", b"gone.c"), "does not apply: can't find file"),
    "other lines": (PATCH.replace(b"int one", b"int null"), r"hunk 1 for fs/open\.c does not fit at line 1"),
    "cut": (PATCH[:-12], "does not apply"),
    "upwards": (PATCH.replace(b"b/fs/open.c", b"b/../open.c"), "leads out"),
    "upwards before the strip": (PATCH.replace(b"/fs/open.c", b"/fs/../../../x"), "leads out"),
    "absolute": (PATCH.replace(b"b/fs/open.c", b"/etc/passwd"), "leads out"),
    "quoted": (PATCH.replace(b"b/fs/open.c", rb'"b/\056\056/x"'), "leads out"),
    "renamed": (
        b"diff --git a/fs/open.c b/../x\nsimilarity index 100%\nrename from fs/open.c\nrename to ../x\n", "leads out"
    ),
    "ed": (b"--- a/fs/open.c\n+++ b/fs/open.c\n1c\nint x;\n.\n!touch /tmp/fsexp-x\n", "changes nothing"),
    "context": (
        b"*** a/fs/open.c\n--- b/fs/open.c\n***************\n*** 1 ****\n! int one;\n--- 1 ----\n! int 1;\n", "nothing"
    ),
    "link": (
        b"diff --git a/x b/x\nnew file mode 120000\nindex 0000000..1111111\n--- /dev/null\n+++ b/x\n"
        b"@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n", "leads out"
    ),
    "binary": (
        b"diff --git a/x b/x\nnew file mode 100644\nindex 0000000..1111111\n"
        b"GIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n",
        "binary",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "words"), BAD_PATCHES.values(), ids=BAD_PATCHES)
def test_a_patch_that_is_refused(place, content, words):
    row = place.row("bad.patch", content)
    with pytest.raises(UserError, match=rf"bad\.patch.*{words}"):
        place.placed(kind="tarball", **place.tarball(), patches=[row])
    assert not Path("/tmp/fsexp-x").exists()


def test_lines_of_a_patch_that_look_like_headers(place):
    """A removed "-- /etc/x" stands as "--- /etc/x" in the patch."""
    files = TREE | {"a.sql": "-- /etc/x\n++ ../y\n"}
    content = b"--- a/a.sql\n+++ b/a.sql\n@@ -1,2 +1,2 @@\n--- /etc/x\n-++ ../y\n+-- /etc/z\n+++ ../z\n"
    patched = place.placed(kind="tarball", **place.tarball(files), patches=[place.row("p", content)])
    assert patched["a.sql"] == "-- /etc/z\n++ ../z\n"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_PARTS, _PARTS, st.booleans())
def test_whatever_a_patch_names_nothing_is_written_outside(tmp_path, old, new, git_header):
    top = tmp_path / "w"
    folder = top / "x" / "tree"
    shutil.rmtree(top, ignore_errors=True)
    write(folder, {"a": "1\n", "b/a": "1\n"})
    write(top, {"a": "1\n", "x/a": "1\n", "b/a": "1\n"})
    header = f"diff --git {old} {new}\n" if git_header else ""
    (tmp_path / "p").write_text(f"{header}--- {old}\n+++ {new}\n@@ -1 +1 @@\n-1\n+2\n")
    try:
        patch.apply(tmp_path / "p", folder)
    except UserError:
        pass
    outside = {str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()}
    assert {k: v for k, v in outside.items() if not k.startswith("x/tree/")} == {"a": "1\n", "x/a": "1\n", "b/a": "1\n"}


# -- folders


def test_a_folder(place):
    folder = place.folder()
    made = place.obtain(kind="tree", path=str(folder))
    assert made.release == "3.2.0"
    assert place.placed(kind="tree", path=str(folder)) == TREE
    assert not place.lock.exists()
    assert made.identity == place.obtain(kind="tree", path=f"{folder}/.").identity


CHANGES = {
    "content": lambda f: (f / "fs/open.c").write_text("int four;\n"),
    "mode": lambda f: (f / "fs/open.c").chmod(0o755),
    "name": lambda f: (f / "fs/open.c").rename(f / "fs/close.c"),
    "new": lambda f: (f / "fs/new.c").touch(),
    "gone": lambda f: (f / "fs/open.c").unlink(),
    "link": lambda f: ((f / "arch/x86/boot/dts/a.dts").unlink(), (f / "arch/x86/boot/dts/a.dts").symlink_to("b")),
    "link made a file": lambda f: (
        (f / "arch/x86/boot/dts/a.dts").unlink(), (f / "arch/x86/boot/dts/a.dts").write_text("../../../../Kconfig")
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("history", [False, True])
def test_a_folder_that_changed(place, change, history):
    folder = place.folder()
    if history:
        run_git(folder, "init", "--quiet")
        commit(folder)
    made = place.obtain(kind="tree", path=str(folder))
    change(folder)
    assert place.obtain(kind="tree", path=str(folder)).identity != made.identity
    out = place.path / "out"
    out.mkdir()
    with pytest.raises(UserError, match="changed while it was copied"):
        made.place(out)


def test_times_owners_and_write_permission_are_no_change(place):
    folder = place.folder()
    made = place.obtain(kind="tree", path=str(folder))
    os.utime(folder / "Kconfig", (1, 1))
    (folder / "Kconfig").chmod(0o400)
    (folder / "empty").mkdir()
    assert place.obtain(kind="tree", path=str(folder)).identity == made.identity
    assert place.placed(kind="tree", path=str(folder)) == TREE


# What make leaves in a tree that is configured and built in place: of 3.2 (scripts/basic/.fixdep.cmd and so on),
# with later kernels' files.
BUILT = [
    ".config", ".config.old", ".version", ".vmlinux.cmd", ".vmlinux.d", "vmlinux", "vmlinux.o", "System.map",
    ".tmp_vmlinux1", "Module.symvers", "modules.order", "modules.builtin", "include/config/auto.conf",
    "include/generated/autoconf.h", "arch/x86/include/generated/asm/unistd.h", "scripts/basic/fixdep",
    "scripts/basic/.fixdep.cmd", "fs/open.o", "fs/.open.o.cmd", "fs/ext4/ext4.ko", "fs/ext4/ext4.mod.c",
    "fs/ext4/ext4.mod", "fs/built-in.a", "scripts/kconfig/zconf.tab.c", "arch/x86/boot/bzImage",
    "arch/x86/boot/setup.bin", "arch/x86/boot/.setup.bin.cmd", "arch/x86/boot/compressed/vmlinux.bin.gz",
    "usr/include/linux/types.h", "fs/open.c.orig", "fs/open.c~", "fs/.open.c.swp",
]  # fmt: skip
SHIPPED = {"scripts/kconfig/zconf.tab.c_shipped": "/* parser */\n", "usr/include/Makefile": "# headers\n"}


def test_what_a_build_left_stays_behind(place):
    clean = place.obtain(kind="tree", path=str(place.folder(TREE | SHIPPED, "clean")))
    folder = place.folder(TREE | SHIPPED | dict.fromkeys(BUILT, "product\n"))
    assert place.placed(kind="tree", path=str(folder)) == TREE | SHIPPED
    assert place.obtain(kind="tree", path=str(folder)).identity == clean.identity


@pytest.mark.parametrize("worktree", [False, True])
def test_a_checkout(place, repository, worktree):
    """Ignored files stay behind, new ones come along; what git tracks comes even where its name is a product's."""
    if worktree:
        run_git(repository, "worktree", "add", "--quiet", str(place.path / "worktree"))
        repository = place.path / "worktree"
    tracked = {
        ".gitignore": "*.o\n.config\nvmlinux\n",
        "lib/blob.o": "firmware\n",
        "include/config/x": "committed by mistake\n",
    }
    write(repository, tracked)
    commit(repository)
    (repository / "fs/open.c").write_text("changed\n")
    (repository / "Kconfig").chmod(0o755)
    (repository / "scripts/run").unlink()
    new = {
        "fs/new.c": "new\n",
        "fs/new.o": "ignored",
        ".config": "ignored",
        "vmlinux": "ignored",
        "scripts/.pc/x": "quilt",
    }
    write(repository, new)
    write(repository / "nested", {"Makefile": "another repository"})
    run_git(repository / "nested", "init", "--quiet")
    index = run_git(repository, "rev-parse", "--git-path", "index")
    before = (repository / index).read_bytes()
    expected = TREE | {
        "fs/open.c": "changed\n", "fs/new.c": "new\n", ".gitignore": tracked[".gitignore"], "lib/blob.o": "firmware\n",
        "Kconfig": ("program", TREE["Kconfig"]),
    }  # fmt: skip
    del expected["scripts/run"]
    assert place.placed(kind="tree", path=str(repository)) == expected
    assert (repository / index).read_bytes() == before


def test_a_folder_inside_another_repository_is_no_checkout(place):
    folder = place.folder()
    run_git(place.path, "init", "--quiet")
    (place.path / ".gitignore").write_text("linux\n")
    assert place.placed(kind="tree", path=str(folder)) == TREE


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("name", ["", "study/", "my/study/"])
def test_the_study_inside_the_source_is_no_part_of_it(place, history, name):
    """The study's folder below the tree, or the tree itself with cache and results in it."""
    folder = place.folder()
    if history:
        run_git(folder, "init", "--quiet")
        commit(folder)
    clean = place.obtain(kind="tree", path=str(folder)).identity
    study = {"cache/downloads/x.c": "1", "results/kernels/a/config": "2", "kernels.lock": "{}", ".snakemake/log/x": "3"}
    write(folder / name, study | ({"config.yaml": "4"} if name else {}))
    place.cache, place.lock = folder / name / "cache", folder / name / "kernels.lock"
    made = place.obtain([folder / name / "results"], kind="tree", path=str(folder))
    assert made.identity == clean
    out = folder / name / "results" / "fresh"
    out.mkdir()
    made.place(out)
    assert read(out) == TREE


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside"])
def test_a_link_out_of_the_folder_is_refused(place, target):
    folder = place.folder(TREE | {"drivers/mine": ("link", target if target[0] == "/" else "../../outside")})
    with pytest.raises(UserError, match="drivers/mine leads out of the tree"):
        place.placed(kind="tree", path=str(folder))


def test_what_is_no_source_folder(place):
    with pytest.raises(UserError, match="is not there"):
        place.obtain(kind="tree", path=str(place.path / "absent"))
    with pytest.raises(UserError, match="no kernel's source"):
        place.obtain(kind="tree", path=str(place.folder({"Makefile": "all:\n"})))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(place):
    folder = place.folder()
    (folder / "Kconfig").chmod(0)
    with pytest.raises(UserError, match=r"Kconfig can't be read"):
        place.obtain(kind="tree", path=str(folder))


def test_pipes_and_sockets_are_no_source(place):
    folder = place.folder()
    os.mkfifo(folder / "fs" / "pipe")
    assert place.placed(kind="tree", path=str(folder)) == TREE


# -- git


@pytest.mark.parametrize("bare", [False, True])
def test_a_commit(place, repository, bare):
    full = run_git(repository, "rev-parse", "HEAD")
    if bare:
        run_git(place.path, "clone", "--quiet", "--bare", str(repository), "bare")
        repository = place.path / "bare"
    made = place.obtain(kind="git", repository=str(repository), commit=full[:10])
    assert made.identity == {"kind": "git", "commit": full}
    assert made.release == "3.2.0"
    (place.path / "linux" / "fs/open.c").write_text("not committed")
    assert place.placed(kind="git", repository=repository.as_uri(), commit="main") == TREE
    assert lock.read(place.lock)[f"git:{repository}:{full[:10]}"] == {"commit": full}
    assert not (place.cache / "git").exists()


def test_a_tag_that_moved_is_what_it_was(place, repository):
    run_git(repository, "tag", "-a", "-m", "", "v1")
    first = place.obtain(kind="git", repository=str(repository), commit="v1")
    (repository / "fs/open.c").write_text("later\n")
    commit(repository)
    run_git(repository, "tag", "-f", "-a", "-m", "", "v1")
    assert place.obtain(kind="git", repository=str(repository), commit="v1").identity == first.identity
    place.lock.unlink()
    assert place.obtain(kind="git", repository=str(repository), commit="v1").identity != first.identity


def test_a_commit_is_read_as_it_is_stored(place, repository, monkeypatch):
    """No settings and attributes: they change lines' ends, leave files out and fill in words on checking out."""
    stored = {
        ".gitattributes": "secret export-ignore\n*.txt export-subst\n*.bat text eol=crlf\n*.c filter=upper\n",
        "secret": "here\n", "v.txt": "$Format:%H$\n", "x.bat": "a\nb\n",
    }  # fmt: skip
    write(repository, stored)
    full = commit(repository)
    run_git(repository, "config", "core.autocrlf", "true")
    run_git(repository, "config", "filter.upper.smudge", "tr a-z A-Z")
    other = run_git(
        repository, "commit-tree", "-m", "", run_git(repository, "hash-object", "-t", "tree", "-w", "/dev/null")
    )
    run_git(repository, "replace", full, other)
    config = place.path / "gitconfig"
    config.write_text("[core]\n autocrlf = true\n[safe]\n directory = /nowhere\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(place.path / "nowhere"))
    assert place.placed(kind="git", repository=str(repository), commit=full) == TREE | stored


def test_what_configuring_left_in_a_commit_stays_behind(place, repository):
    write(repository, {".config": "CONFIG_X=y\n", "include/generated/autoconf.h": "#define X\n"})
    assert place.placed(kind="git", repository=str(repository), commit=commit(repository)) == TREE


def test_commits_that_are_not_there(place, repository):
    for name in ("0" * 40, "v9", "-x", "main:Makefile", ""):
        with pytest.raises(UserError, match="has no commit"):
            place.obtain(kind="git", repository=str(repository), commit=name)
    with pytest.raises(UserError, match="is no git repository"):
        place.obtain(kind="git", repository=str(repository / "fs"), commit="main")
    with pytest.raises(UserError, match="is not there"):
        place.obtain(kind="git", repository=str(place.path / "absent"), commit="main")
    (repository / "Kconfig").unlink()
    with pytest.raises(UserError, match="holds no kernel's source"):
        place.obtain(kind="git", repository=str(repository), commit=commit(repository))
    assert not place.lock.exists()


def test_a_damaged_repository(place, repository):
    name = run_git(repository, "rev-parse", "HEAD:fs/open.c")
    (repository / ".git/objects" / name[:2] / name[2:]).unlink()
    with pytest.raises(MachineError, match=name):
        place.placed(kind="git", repository=str(repository), commit="HEAD")


def test_names_in_a_commit_that_lead_out(place, repository):
    """Git itself makes no such tree, but reads it."""
    rows = {
        name: bytes.fromhex(run_git(repository, "rev-parse", f"HEAD:{name}")) for name in ("Kconfig", "Makefile", "fs")
    }
    raw = b"40000 ..\0" + rows.pop("fs")
    raw += b"".join(b"100644 %s\0%s" % (name.encode(), blob) for name, blob in rows.items())
    command = ["git", "-C", repository, "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    made = subprocess.run(command, input=raw, capture_output=True, check=True).stdout.decode().strip()
    full = run_git(repository, "commit-tree", "-m", "", made)
    with pytest.raises(UserError, match="leads out of the tree"):
        place.placed(kind="git", repository=str(repository), commit=full)


@pytest.fixture
def served(repository, monkeypatch):
    """The repository as one elsewhere: an address that git's own settings lead to the folder."""
    run_git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(repository.parent / "gitconfig"))
    (repository.parent / "gitconfig").write_text(
        f'[url "file://{repository}"]\n insteadOf = https://nowhere.invalid/linux.git\n'
    )
    return "https://nowhere.invalid/linux.git"


def test_a_commit_of_a_repository_elsewhere(place, repository, served):
    first = run_git(repository, "rev-parse", "HEAD")
    (repository / "fs/open.c").write_text("second\n")
    commit(repository)
    assert place.placed(kind="git", repository=served, commit=first) == TREE
    (kept,) = [path for path in (place.cache / "git").iterdir() if path.is_dir()]
    assert run_git(kept, "rev-list", "--count", "--all") == "1"  # without its history
    (repository / ".git").rename(repository / "gone")
    assert place.placed(kind="git", repository=served, commit=first) == TREE
    with pytest.raises(MachineError, match="can't be fetched"):
        place.obtain(kind="git", repository=served, commit="1" * 40)


@pytest.mark.parametrize("name", ["v3.2", "main", "refs/heads/main", "abbreviated"])
def test_names_of_a_repository_elsewhere(place, repository, served, name):
    full = run_git(repository, "rev-parse", "HEAD")
    run_git(repository, "tag", "-a", "-m", "", "v3.2")
    made = place.obtain(kind="git", repository=served, commit=full[:9] if name == "abbreviated" else name)
    assert made.identity == {"kind": "git", "commit": full}


def test_what_a_repository_elsewhere_does_not_have(place, served):
    for name in ("v9", "abcdef123"):
        with pytest.raises(UserError, match=rf"no tag or branch that is or begins with {name}"):
            place.obtain(kind="git", repository=served, commit=name)
    with pytest.raises(UserError, match=r"has no commit 1111"):
        place.obtain(kind="git", repository=served, commit="1" * 40)


def test_without_git(place, repository, monkeypatch):
    monkeypatch.setenv("PATH", str(place.path))
    with pytest.raises(UserError, match="apt-get install git"):
        place.obtain(kind="git", repository=str(repository), commit="main")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("https://h/x.git", True), ("ssh://h/x", True), ("git@h:x/y.git", True), ("file:///x", False), ("/x/y", False),
        ("../x", False), ("./a:b", False), ("x", False),
    ],
)  # fmt: skip
def test_addresses_and_paths(name, expected):
    assert git.is_remote(name) is expected


# -- releases


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VERSION = 2\nPATCHLEVEL = 6\nSUBLEVEL = 39\nEXTRAVERSION = .4\n", "2.6.39.4"),
        ("# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 0\nEXTRAVERSION = -rc3\nNAME = x\n", "6.12.0-rc3"),
        ("VERSION=5\nPATCHLEVEL=4\nSUBLEVEL=302\nEXTRAVERSION=\nexport VERSION\n", "5.4.302"),
        ("VERSION = 1.2\n", None),
        ("all:\n\tVERSION = 3\n\tPATCHLEVEL = 2\n", None),
        ("", None),
    ],
)
def test_the_release_that_a_makefile_says(text, expected):
    assert tree.read_release(text) == expected
