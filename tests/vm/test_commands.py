"""Programs of Debian's packages in a guest."""

import subprocess

import pytest
from bench import CORE, Bench, experiment

from fsexp import native, plan, table

pytestmark = pytest.mark.vm

PACKAGES = ["coreutils", "dash", "findutils", "fio"]
DIRECTORIES = 27


def bench_of(prepared, name, *commands, **others):
    workload = {"name": "commands", "packages": PACKAGES, "commands": list(commands), **others}
    bench = Bench(prepared.folder, {name: experiment(workload)}, f"{name}.yaml")
    one = bench.planned(name)
    bench.fsexp("userland", plan.userland_key(plan.guest_packages(bench.config.experiments[name])))
    bench.make_ops()
    bench.fsexp("run", "--run", one.folder)
    return bench, one


def host_find(folder, kind):
    """What find of this machine finds of a tree that the core made on this machine."""
    folder.mkdir()
    native.run(CORE, "tree", {"directories": DIRECTORIES}, folder)
    found = subprocess.run(["find", "workspace", "-type", kind], cwd=folder, capture_output=True, text=True, check=True)
    return sorted(found.stdout.splitlines())


def test_programs(prepared, tmp_path):
    bench, one = bench_of(
        prepared,
        "programs",
        {"argv": "find workspace -type d", "phase": "directories", "cold": True},
        "find workspace -type f",
        "sh -c 'cp -a workspace copy && exec diff -r workspace copy >&2'",
        "fio --name=log --rw=write --bs=4k --size=1m --ioengine=psync --end_fsync=1 --output-format=json",
        prepare={"name": "tree", "directories": DIRECTORIES},
    )
    result, _ = bench.result(one)
    # diffutils is not among the packages.
    assert (result["outcome"], result["reason"][:12]) == ("workload-failed", "status 'sh':")
    commands = {record["phase"]: record for record in result["records"] if record["type"] == "command"}
    assert list(commands) == ["directories", "find", "sh"]
    assert sorted(commands["directories"]["output"].splitlines()) == host_find(tmp_path / "d", "d")
    assert sorted(commands["find"]["output"].splitlines()) == host_find(tmp_path / "f", "f")
    assert commands["sh"]["status"] == 127
    assert "diff: not found" in commands["sh"]["output"] + commands["sh"].get("errors", "")


def test_fio(prepared):
    bench, one = bench_of(
        prepared,
        "fio",
        "fio --name=log --rw=randrw --bs=4k --size=1m --ioengine=psync --output-format=json",
    )
    result, _ = bench.result(one)
    assert (result["outcome"], result["reason"]) == ("ok", "")
    found = table.load_run(plan.describe(bench.config), vars_of(one), bench.results)
    rows = found.rows["fio"]
    assert [row["job"] for row in rows] == ["log", "log"]
    assert sum(row["bytes"] for row in rows) == 2**20
    assert sum(row["requests"] for row in rows) == 256


def vars_of(one):
    return {"experiment": one.experiment, "levels": one.levels, "seed": one.seed, "folder": one.folder}


def test_a_program_that_is_not_there(prepared):
    bench, one = bench_of(prepared, "missing", "no-such-program --help")
    result, _ = bench.result(one)
    assert result["outcome"] == "workload-failed"
    assert "no-such-program" in result["reason"]
