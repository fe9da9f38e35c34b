"""Images: what is told of a mkfs that refuses, and of a file that is not what its description says. Nothing boots."""

import json
import struct
import zlib

import inputs
import pytest
from test_config import GOOD

from fsexp import cli, config, plan, run, table
from fsexp.errors import MachineError, UserError
from fsexp.image import filesystem
from fsexp.kernel import ModuleMissing
from fsexp.vm import guest

BLOCK = 4096


def image(*extents, size=256 * 2**20):
    """An image of (first block, bytes) by vmimages/core/README.md."""
    data = struct.pack("<8sIIQ", b"FSEXPIMG", 1, BLOCK, size)
    for first, content in extents:
        data += struct.pack("<QI", first, len(content) // BLOCK) + content
    return data + struct.pack("<QI", 2**64 - 1, zlib.crc32(data))


def block(at, content, blocks=1):
    return content.rjust(at + len(content), b"\0").ljust(blocks * BLOCK, b"\0")


# Superblocks by Documentation/filesystems/ext4/super.rst (at 1024, magic at 0x38), btrfs's on-disk format (at 64 KiB,
# magic at 0x40) and xfs's (at 0).
EXT4 = image((0, block(1024 + 0x38, b"\x53\xef")))
BTRFS = image((5, b"x" * BLOCK), (15, block(BLOCK + 0x40, b"_BHRfS_M", blocks=3)))
XFS = image((0, block(0, b"XFSB")))


@pytest.mark.parametrize(
    ("data", "type_", "there"),
    [
        (EXT4, "ext4", True),
        (BTRFS, "btrfs", True),
        (XFS, "xfs", True),
        (EXT4, "btrfs", False),
        (BTRFS, "ext4", False),
        (image(), "ext4", False),
        (image((1, b"x" * BLOCK)), "ext4", False),
        (image(), "another", False),
        (image((7, b"x" * BLOCK)), "another", True),
    ],
)
def test_what_an_image_holds(data, type_, there):
    assert filesystem.holds(data, type_) is there


class Maker:
    """A study in a folder, with a maker VM that answers as the test says."""

    def __init__(self, folder, monkeypatch, capsys):
        self.folder = folder
        monkeypatch.chdir(folder)
        self.capsys = capsys
        self.configure(GOOD)
        inputs.kernel(folder / "results" / "maker")
        for name in self.study.kernels:
            inputs.kernel(folder / "results" / "kernels" / plan.slug(name))
        made = next(iter(plan.images(self.study).values()))
        inputs.userland(folder / "results" / "userland" / plan.userland_key(made.packages))
        inputs.ops(folder / "results" / "ops" / f"{plan.ops_key(self.study.experiments['create-unlink'])}.ops")
        self.core = inputs.core(folder / "core")
        self.key = made.key
        self.description = folder / "results" / "images" / self.key / "image.json"
        monkeypatch.setattr(run, "start", self.start)

    def configure(self, data):
        self.study = config.validate(data)
        (self.folder / "config.yaml").write_text(json.dumps(data))

    def start(self, _config, _booting, export=None):
        files = self.folder / "files"
        files.mkdir()
        (files / "console.log").write_text("Linux\n")
        if export and self.exported is not None:
            with export.open("r+b") as disk:
                disk.write(self.exported)
        return self.result, files

    def answers(self, outcome, status=0, output="", exported=None):
        """The next guest ends so: its command's status and output, and the image that it exports."""
        self.exported = exported
        records = [{"type": "command", "argv": ["mkfs.ext4"], "status": status, "output": output}]
        if exported is not None:
            records.append(
                {"type": "export", "bytes": len(exported), "digest_crc32": f"{zlib.crc32(exported):08x}", "blocks": 1}
            )
        self.result = {"outcome": outcome, "reason": "r", "records": records}

    def image(self, *options):
        """The exit status of `fsexp image`, and what it said."""
        status = cli.main(["image", self.key, "--core", str(self.core), *options])
        out, err = self.capsys.readouterr()
        return status, out + err

    def run(self, *options):
        one = next(plan.runs(self.study))
        status = cli.main(["run", "--run", one.folder, "--core", str(self.core), *options])
        return status, "".join(self.capsys.readouterr()), self.folder / "results" / one.folder / "run.json"


@pytest.fixture
def maker(tmp_path, monkeypatch, capsys):
    return Maker(tmp_path, monkeypatch, capsys)


def test_a_good_image(maker):
    maker.answers("ok", exported=EXT4)
    assert maker.image() == (0, "")
    assert maker.description.with_name("image.fsimg").read_bytes() == EXT4


REFUSED = ("workload-failed", 1, "mke2fs 1.47.0\nInvalid filesystem option set: nope\n", None)
NOTHING = ("ok", 0, "mke2fs 1.47.0\n", image())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (REFUSED, "mkfs.ext4 failed with status 1: mke2fs 1.47.0\nInvalid filesystem option set: nope"),
        (NOTHING, "made no ext4: mke2fs 1.47.0"),
    ],
)
def test_a_refusal_of_mkfs_is_an_outcome_of_its_cells(maker, answer, reason):
    maker.answers(*answer)
    status, said = maker.image("--or-unavailable")
    assert status == 0
    assert reason in said
    described = json.loads(maker.description.read_text())
    assert described["outcome"] == "unsupported"
    assert reason in described["unavailable"]
    assert maker.description.with_name("image.fsimg").exists()
    status, said, result = maker.run()
    assert status == 0, said
    document = json.loads(result.read_text())
    assert (document["outcome"], document["reason"]) == ("unsupported", described["unavailable"])
    planned = plan.describe(maker.study)
    row = table.load_run(planned, planned["runs"][0], maker.folder / "results").row
    assert (row["outcome"], row["warnings"]) == ("unsupported", None)


@pytest.mark.parametrize("answer", [REFUSED, NOTHING])
def test_a_refusal_is_an_error_by_hand_and_when_strict(maker, answer):
    maker.answers(*answer)
    assert maker.image()[0] == 1
    assert not maker.description.exists()
    maker.configure(GOOD | {"strict": True})
    assert maker.image("--or-unavailable")[0] == 1
    assert not maker.description.exists()


@pytest.mark.parametrize(
    "answer",
    [
        ("panic", 1, "", None),
        # The kernel ended it: no memory, for example.
        ("workload-failed", 128 + 9, "", None),
        ("hang", 0, "", None),
        ("infrastructure", 0, "", None),
    ],
)
def test_a_failure_of_the_maker_is_an_error(maker, answer):
    maker.answers(*answer)
    status, said = maker.image("--or-unavailable")
    assert (status, maker.description.exists()) == (2, False)
    assert "the maker VM ended" in said


def prepare(maker):
    one = next(plan.runs(maker.study))
    results = maker.folder / "results"
    return run.prepare(
        maker.study,
        one,
        run.Inputs(
            kernel=results / "kernels" / plan.slug(one.kernel) / "kernel.json",
            image=maker.description,
            ops=next((results / "ops").iterdir()),
            core=maker.core,
        ),
    )


def whole(maker):
    maker.answers("ok", exported=EXT4)
    assert maker.image()[0] == 0
    assert prepare(maker).initramfs


def change(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("place", "name"),
    [("images/*/image.fsimg", "image.fsimg"), ("kernels/*/image", "image"), ("kernels/*/modules/brd.ko", "brd.ko")],
)
@pytest.mark.parametrize("how", ["changed", "removed"])
def test_an_input_that_is_not_what_its_description_says(maker, place, name, how):
    whole(maker)
    for path in (maker.folder / "results").glob(place):
        change(path) if how == "changed" else path.unlink()
    with pytest.raises(UserError, match=name):
        prepare(maker)


def test_a_userland_that_is_not_what_its_description_says(maker):
    change(next((maker.folder / "results" / "userland").glob("*/root.tar")))
    maker.answers("ok", exported=EXT4)
    status, said = maker.image()
    assert status == 1
    assert "root.tar is not what" in said


@pytest.mark.parametrize(
    "content",
    ["{}", "[]", "null", "{", "", "[" * 100_000, '{"format": 1}', '{"unavailable": 1}', '{"modules": {"ext4": {}}}'],
)
@pytest.mark.parametrize(
    ("read", "what"), [(guest.read_kernel, "kernel"), (guest.read_image, "image"), (guest.read_userland, "userland")]
)
def test_a_description_that_is_damaged(tmp_path, read, what, content):
    path = tmp_path / f"{what}.json"
    path.write_text(content)
    with pytest.raises(UserError, match=rf"{what}\.json is damaged \(.*`fsexp {what}`"):
        read(path)


def test_a_kernel_whose_modules_are_damaged(maker):
    path = next((maker.folder / "results" / "kernels").glob("*/kernel.json"))
    described = json.loads(path.read_text())
    del described["modules"]["brd"]["depends"]
    path.write_text(json.dumps(described))
    with pytest.raises(UserError, match="its module brd has no depends"):
        guest.read_kernel(path)


def test_a_kernel_without_a_module_is_unsupported(maker):
    whole(maker)
    for path in (maker.folder / "results" / "kernels").glob("*/kernel.json"):
        described = json.loads(path.read_text())
        described["builtin"].remove("ext4")
        path.write_text(json.dumps(described))
    with pytest.raises(ModuleMissing):
        prepare(maker)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"outcome": "well", "records": []}'])
def test_a_kept_run_that_is_damaged(maker, content):
    whole(maker)
    store = maker.folder / "cache" / "runs" / prepare(maker).identity
    store.mkdir(parents=True)
    (store / "result.json").write_text(content)
    status, said, _ = maker.run()
    assert status == 1
    assert f"the run kept in cache/runs/{store.name} is damaged; remove that folder" in said


def test_machine_errors_have_another_status(maker, monkeypatch):
    def fail(*_):
        raise MachineError("no QEMU")

    monkeypatch.setattr(filesystem, "make", fail)
    assert maker.image()[0] == 2
