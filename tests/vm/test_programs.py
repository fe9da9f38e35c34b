"""Programs of Debian's packages in a guest."""

import re
import subprocess

import pytest
import yaml
from bench import CHECKOUT, CORE, Bench, experiment

from fsexp import native, plan, table

pytestmark = pytest.mark.vm

PACKAGES = ["coreutils", "dash", "findutils"]
DIRECTORIES = 27


def bench_of(prepared, name, *commands, **others):
    """A study of one run, made; others: more of the workload."""
    workload = {"name": "commands", "packages": PACKAGES, "commands": list(commands)} | others
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
        "sync",
        prepare={"name": "tree", "directories": DIRECTORIES},
    )
    result, _ = bench.result(one)
    # diffutils is not among the packages.
    assert (result["outcome"], result["reason"][:11]) == ("workload-failed", "status 'sh'")
    commands = {record["phase"]: record for record in result["records"] if record["type"] == "command"}
    assert list(commands) == ["directories", "find", "sh"]
    assert sorted(commands["directories"]["output"].splitlines()) == host_find(tmp_path / "d", "d")
    assert sorted(commands["find"]["output"].splitlines()) == host_find(tmp_path / "f", "f")
    assert commands["sh"]["status"] == 127
    assert "diff: not found" in commands["sh"]["output"] + commands["sh"].get("errors", "")


@pytest.mark.parametrize("number", [0, -1])
def test_the_page(prepared, number):
    """docs/workloads.md: the example of five lines, and fio."""
    page = (CHECKOUT / "docs" / "workloads.md").read_text()
    blocks = re.findall(r"^    workload:\n(?:    .*\n)+", page, re.MULTILINE)
    workload = yaml.safe_load(blocks[number])["workload"]
    del workload["name"]
    bench, one = bench_of(prepared, f"page{number}", *workload.pop("commands"), **workload)
    result, _ = bench.result(one)
    assert (result["outcome"], result["reason"]) == ("ok", "")
    planned = {"experiment": one.experiment, "levels": one.levels, "seed": one.seed, "folder": one.folder}
    rows = table.load_run(plan.describe(bench.config), planned, bench.results).rows
    if number == 0:
        assert [row["phase"] for row in rows["commands"]] == ["find", "cp", "rm", "sync"]
        assert rows["fio"] == []
        return
    # --size=8m in blocks of 4 KiB, read and written by turns as they fall.
    assert {row["job"] for row in rows["fio"]} == {"log"}
    assert [row["direction"] for row in rows["fio"]] == ["read", "write"]
    assert sum(row["bytes"] for row in rows["fio"]) == 8 * 2**20
    assert sum(row["requests"] for row in rows["fio"]) == 2048


def test_a_program_that_is_not_there(prepared):
    bench, one = bench_of(prepared, "missing", "no-such-program --help")
    result, _ = bench.result(one)
    assert result["outcome"] == "workload-failed"
    assert "no-such-program" in result["reason"]
