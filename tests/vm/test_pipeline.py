"""The whole study, by the commands a user types, in a checkout whose path and labels have everything in them.

The tests of one checkout build on each other, in the order they stand in.
"""

import csv
import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from bench import (
    CHECKOUT,
    COMMANDS,
    KERNELS,
    NFILES,
    copy_locks,
    experiment,
    fill_cache,
    nothing_to_fetch_from,
    processes,
    qemus,
)

from fsexp import cli, config, plan, run

pytestmark = pytest.mark.vm

KERNEL_LABELS = {"ядро 6.1 = <старое> & \"100%\"_'a'": "debian-6.1", "new kernel; $HOME `x` \\ #": "debian-backports"}
FILESYSTEM_LABELS = {"ext4_% = & <b>": "ext4", "btrfs, второй": "btrfs"}
EXPERIMENT = 'create & "unlink" <1>'
# A label renamed: the run is the same.
NEW_LABEL = "another {name} for *it*"


class Checkout:
    """The project's tracked files in a folder of their own, with a small study."""

    def __init__(self, folder):
        self.folder = folder
        tracked = subprocess.run(
            ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True
        ).stdout.split("\0")
        for name in filter(None, tracked):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, folder / name)
        shutil.copytree(CHECKOUT / "vmimages" / "core" / "build", folder / "vmimages" / "core" / "build")
        fill_cache(folder / "cache")
        copy_locks(folder)
        self.study = {
            "title": 'A <study> & its "name"',
            "strict": True,
            "machine": {"memory_mib": 512},
            "limits": {"attempts": 1},
            "kernels": {label: KERNELS[name] for label, name in KERNEL_LABELS.items()},
            "filesystems": {label: {"type": name, "disk_mib": 256} for label, name in FILESYSTEM_LABELS.items()},
            "experiments": {
                EXPERIMENT: experiment({"name": "create-unlink", "nfiles": NFILES}, KERNEL_LABELS, FILESYSTEM_LABELS)
            },
        }
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("FSEXP_")}
        self.environment |= {
            "PATH": f"{COMMANDS}:{os.environ['PATH']}",
            # The commands of the rules run the copy's code.
            "PYTHONPATH": str(folder),
            # Snakemake keeps things of its own in the user's folder.
            "XDG_CACHE_HOME": str(folder / ".home"),
        }
        self.configure()

    @property
    def results(self):
        return self.folder / "results"

    def configure(self):
        """Write the study as it is now."""
        text = yaml.safe_dump(self.study, allow_unicode=True, sort_keys=False)
        (self.folder / "config.yaml").write_text(text, encoding="utf-8")

    def start(self, *arguments, before=(), **environment):
        return subprocess.Popen(
            [*before, "snakemake", "--cores", "2", *arguments],
            cwd=self.folder,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def snakemake(self, *arguments, **options):
        """What `snakemake` writes; it must succeed."""
        process = self.start(*arguments, **options)
        said, _ = process.communicate()
        assert process.returncode == 0, said
        return said

    def runs(self):
        return list(plan.runs(config.load([self.folder / "config.yaml"])))

    def marks(self, runs=None):
        """Each run's folder -> what changes when run.json is written again."""
        found = {}
        for one in runs or self.runs():
            path = self.results / one.folder / "run.json"
            if path.exists():
                status = path.stat()
                found[one.folder] = (status.st_ino, status.st_mtime_ns)
        return found

    def document(self, one):
        return json.loads((self.results / one.folder / "run.json").read_text(encoding="utf-8"))

    def table(self, name):
        with (self.results / "tables" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def no_emulator(self):
        """Environment in which a QEMU says its version and does nothing else."""
        folder = self.folder / "no emulator"
        folder.mkdir(exist_ok=True)
        script = folder / "qemu-system-x86_64"
        real = shutil.which("qemu-system-x86_64")
        script.write_text(
            f'#!/bin/sh\n[ "$*" = --version ] && exec {real} --version\necho "$*" >>"$0.started"\nexit 1\n'
        )
        script.chmod(0o755)
        return {"PATH": f"{folder}:{self.environment['PATH']}"}

    def emulator_started(self):
        return (self.folder / "no emulator" / "qemu-system-x86_64.started").exists()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout in which the study was made once."""
    if nothing_to_fetch_from():
        pytest.skip("no package in the cache, and no Debian mirror can be reached")
    made = Checkout(tmp_path_factory.mktemp("checkout") / "mein Prüfstand ä")
    made.first_words = made.snakemake("all")
    return made


def test_every_run_is_ok(checkout):
    runs = checkout.runs()
    assert len(runs) == 4
    for one in runs:
        document = checkout.document(one)
        assert (document["outcome"], document["reason"]) == ("ok", "")
        assert document["levels"] == {
            "kernel": one.kernel,
            "filesystem": one.filesystem,
            "disk": "ram",
            "variant": "",
        }
        assert document["parameters"] == {"nfiles": NFILES}
        assert str(checkout.folder) not in document["command_line"]
    assert "4 runs: 4 ok" in checkout.first_words
    assert not processes(checkout.folder)


def test_tables(checkout):
    rows = checkout.table("runs")
    assert [(row["kernel"], row["filesystem"]) for row in rows] == [
        (kernel, filesystem) for kernel in KERNEL_LABELS for filesystem in FILESYSTEM_LABELS
    ]
    assert {row["experiment"] for row in rows} == {EXPERIMENT}
    phases = checkout.table("phases")
    # 4 runs of 2 phases; the state after the mount is one more row of space.
    assert len(phases) == 8
    space = checkout.table("space")
    assert len([row for row in space if row["kind"] == "filesystem"]) == 12
    # Three kinds of each of the 6 states of btrfs.
    kinds = [row for row in space if row["kind"] != "filesystem"]
    assert sorted(row["kind"] for row in kinds) == ["data"] * 6 + ["metadata"] * 6 + ["system"] * 6
    # mkfs.btrfs(8): on one device metadata is kept twice.
    assert {(row["kind"], row["profile"]) for row in kinds} == {
        ("data", "single"),
        ("metadata", "DUP"),
        ("system", "DUP"),
    }
    operations = checkout.table("operations")
    assert {(row["phase"], row["operation"], row["count"]) for row in operations} == {
        ("create", "create", "50"),
        ("delete", "unlink", "50"),
    }
    times = [[int(row[name]) for name in ("p50_ns", "p90_ns", "p99_ns", "max_ns", "total_ns")] for row in operations]
    assert len(times) == 8 and all(one == sorted(one) and one[0] > 0 for one in times)
    assert {(row["phase"], row["operations"], row["errors"]) for row in phases} == {
        ("create", "50", "0"),
        ("delete", "50", "0"),
    }
    assert all(int(row["elapsed_ns"]) > 0 for row in phases)


def test_inodes_by_arithmetic(checkout):
    free = {
        (row["kernel"], row["phase"]): int(row["free_inodes"])
        for row in checkout.table("space")
        if row["filesystem"] == "ext4_% = & <b>"
    }
    for kernel in KERNEL_LABELS:
        # Fifty files, and the folder they are in, which is removed after the last phase.
        assert free[kernel, ""] - free[kernel, "create"] == 51
        assert free[kernel, ""] - free[kernel, "delete"] == 1


def test_report_has_the_labels_as_text(checkout):
    page = (checkout.results / "report" / "index.html").read_text(encoding="utf-8")
    for label in (*KERNEL_LABELS, *FILESYSTEM_LABELS, EXPERIMENT):
        quoted = label.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        both = (quoted, quoted.replace('"', "&#34;").replace("'", "&#39;"))
        assert any(text in page for text in both), label
        if quoted != label:
            assert label not in page
    assert "<старое>" not in page and "<b>" not in page


def test_second_call_does_nothing(checkout):
    before = checkout.marks()
    assert "Nothing to be done" in checkout.snakemake("all")
    assert checkout.marks() == before


def test_touched_files_repeat_no_run(checkout):
    before = checkout.marks()
    touched = [
        *checkout.results.glob("kernels/*/kernel.json"),
        *checkout.results.glob("images/*/image.json"),
        checkout.folder / "vmimages" / "core" / "build" / "core",
        checkout.folder / "config.yaml",
    ]
    assert len(touched) == 6
    for path in touched:
        path.touch()
    said = checkout.snakemake("all", **checkout.no_emulator())
    assert "Nothing to be done" in said
    assert checkout.marks() == before
    assert not checkout.emulator_started()


def test_a_comment_repeats_no_run(checkout):
    path = checkout.folder / "config.yaml"
    path.write_text("# A comment.\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert "Nothing to be done" in checkout.snakemake("all")


def test_a_limit_boots_nothing(checkout):
    before = [checkout.document(one) for one in checkout.runs()]
    checkout.study["limits"]["hang_s"] = 200.0
    checkout.configure()
    checkout.snakemake("all", **checkout.no_emulator())
    assert [checkout.document(one) for one in checkout.runs()] == before
    assert not checkout.emulator_started()


def test_one_level_repeats_its_runs_only(checkout):
    before = checkout.marks()
    digests = {one.folder: checkout.document(one)["inputs"]["image"] for one in checkout.runs()}
    checkout.study["filesystems"]["btrfs, второй"]["mount"] = "noatime,nodatacow"
    checkout.configure()
    checkout.snakemake("all")
    after = checkout.marks()
    changed = {one.filesystem for one in checkout.runs() if before[one.folder] != after[one.folder]}
    kept = {one.filesystem for one in checkout.runs() if before[one.folder] == after[one.folder]}
    assert (changed, kept) == ({"btrfs, второй"}, {"ext4_% = & <b>"})
    for one in checkout.runs():
        document = checkout.document(one)
        assert document["outcome"] == "ok"
        # What the disk holds before does not depend on how it is mounted.
        assert document["inputs"]["image"] == digests[one.folder]
        options = next(record for record in document["records"] if record["type"] == "mount")["options"]
        assert ("nodatacow" in options) == (one.filesystem == "btrfs, второй")


def test_renamed_label_boots_nothing(checkout):
    old = next(iter(KERNEL_LABELS))
    identities = {one.filesystem: checkout.document(one)["identity"] for one in checkout.runs() if one.kernel == old}
    for section in (checkout.study["kernels"], checkout.study["experiments"][EXPERIMENT]):
        if "kernels" in section:
            section["kernels"] = [NEW_LABEL if name == old else name for name in section["kernels"]]
        else:
            section[NEW_LABEL] = section.pop(old)
    checkout.configure()
    checkout.snakemake("all", **checkout.no_emulator())
    assert not checkout.emulator_started()
    renamed = [one for one in checkout.runs() if one.kernel == NEW_LABEL]
    assert {one.filesystem: checkout.document(one)["identity"] for one in renamed} == identities
    assert {checkout.document(one)["levels"]["kernel"] for one in renamed} == {NEW_LABEL}
    assert {row["kernel"] for row in checkout.table("runs")} == {NEW_LABEL, list(KERNEL_LABELS)[1]}


def test_interrupted_and_started_again(checkout):
    checkout.study["experiments"][EXPERIMENT]["workload"]["nfiles"] = NFILES + 1
    checkout.configure()
    process = checkout.start("all")
    # Two run at a time: when the first has ended, another is in the middle, or begins.
    wait_for(process, lambda: finished_runs(checkout))
    wait_for(process, lambda: qemus(checkout.folder))
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate()
    assert process.returncode != 0, said
    assert not processes(checkout.folder), said
    finished = finished_runs(checkout)
    assert 1 <= len(finished) < 4
    # A run that was booted again would have taken another time of the host's. Its file may be written again, from the
    # cache: Snakemake was stopped before it saw the end of that job.
    before = {one.folder: checkout.document(one) for one in checkout.runs() if one.folder in finished}
    checkout.snakemake("all")
    assert len(finished_runs(checkout)) == 4
    assert before == {one.folder: checkout.document(one) for one in checkout.runs() if one.folder in finished}
    assert {row["operations"] for row in checkout.table("phases")} == {str(NFILES + 1)}


def finished_runs(checkout):
    """The runs whose run.json is of the study as it is now."""
    found = set()
    for one in checkout.runs():
        with suppress(FileNotFoundError):  # it is removed before it is made again
            if checkout.document(one)["parameters"] == {"nfiles": NFILES + 1}:
                found.add(one.folder)
    return found


def wait_for(process, what):
    """Until `what()` is true, while the process runs."""
    while not what():
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)


def test_no_network_and_no_results(checkout):
    before = {one.folder: checkout.document(one) for one in checkout.runs()}
    try:
        subprocess.run(["unshare", "--net", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a network can't be taken away here: {error}")
    shutil.rmtree(checkout.results)
    checkout.snakemake("all", before=["unshare", "--net"])
    for one in checkout.runs():
        assert checkout.document(one) == before[one.folder]
    assert "4 ok" in checkout.snakemake("tables", "--forcerun", "tables")


# -- selfcheck


def test_selfcheck(prepared):
    said = prepared.fsexp("selfcheck")
    lines = said.splitlines()
    # 4 cells of 2 phases, a line for each cell, and the sum.
    assert len(lines) == 13
    assert sum(line.endswith(": equal") for line in lines) == 8
    # hello, 2 x modules, image, mount, 3 x space, 2 x phase, 2 x operations, end
    assert lines[-1] == "selfcheck: 60 records of 60 agree in every digit"
    assert (prepared.results / "selfcheck" / "selfcheck.txt").read_text() == said


def test_selfcheck_finds_a_digit(prepared, monkeypatch, capsys, tmp_path):
    one = prepared.planned("small")
    prepared.fsexp("run", "--run", one.folder)
    result, folder = prepared.result(one)
    booted = []

    def start(*_):
        """The kept run once more; from the second time on with another digit in a phase's time."""
        files = tmp_path / f"boot-{len(booted)}"
        booted.append(files)
        files.mkdir()
        for name in run.FILES:
            shutil.copyfile(folder / name, files / name)
        if len(booted) > 1:
            lines = (files / "records.jsonl").read_bytes().splitlines(keepends=True)
            lines[6] = lines[6].replace(b'"elapsed_ns":', b'"elapsed_ns":9')
            (files / "records.jsonl").write_bytes(b"".join(lines))
        return result, files

    monkeypatch.setattr(run, "start", start)
    monkeypatch.chdir(prepared.folder)
    assert cli.main(["selfcheck", "--kernel", "debian-6.1"]) == 2
    said = capsys.readouterr().err
    assert "line 7 of records.jsonl differs" in said
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert f"  idle: {lines[6]}\n" in said
    assert (
        f"  busy: {lines[6].replace(chr(34) + 'elapsed_ns' + chr(34) + ':', chr(34) + 'elapsed_ns' + chr(34) + ':9')}\n"
        in said
    )
    kept = prepared.results / "selfcheck"
    assert (kept / "idle" / "records.jsonl").read_bytes() != (kept / "busy" / "records.jsonl").read_bytes()
    assert not [path for path in booted if path.exists()]
    assert len(booted) == 2


def test_selfcheck_of_a_run_that_fails(prepared, monkeypatch, capsys, tmp_path):
    one = prepared.planned("small")
    prepared.fsexp("run", "--run", one.folder)
    result, folder = prepared.result(one)

    def start(*_):
        files = tmp_path / "boot"
        shutil.copytree(folder, files)
        return result | {"outcome": "panic", "reason": "Kernel panic - not syncing: a test"}, files

    monkeypatch.setattr(run, "start", start)
    monkeypatch.chdir(prepared.folder)
    assert cli.main(["selfcheck", "--kernel", "debian-6.1"]) == 2
    assert "the run ended panic: Kernel panic - not syncing: a test" in capsys.readouterr().err
    assert not Path(tmp_path, "boot").exists()
