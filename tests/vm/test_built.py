"""A real kernel built from source, and booted: the smallest that mounts ext4 and btrfs, from Debian's source of 6.1."""

import json
import os

import pytest
from bench import CHECKOUT, FILESYSTEMS

from fsexp.errors import MachineError
from fsexp.kernel import build, kinds

pytestmark = [
    pytest.mark.vm,
    pytest.mark.slow,
    # A thousand objects: more than a quarter of an hour on two slow cores. tests/kernel/test_build.py has the logic.
    pytest.mark.skipif("FSEXP_BUILD" not in os.environ, reason="a real build: set FSEXP_BUILD=1 to have it"),
]

SPEC = {"kind": "debian", "suite": "bookworm", "package": "linux-source-6.1", "build": True}


@pytest.fixture(scope="module")
def kernel(prepared, tmp_path_factory):
    output = tmp_path_factory.mktemp("built") / "kernel"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "COMMON", CHECKOUT / "tests" / "data" / "small.config")
        try:
            kinds.make(SPEC, prepared.folder / "cache", prepared.folder / "kernels.lock", output, os.cpu_count() or 1)
        except MachineError as error:
            pytest.skip(f"Debian's kernel source can't be fetched: {error}")
    return output / "kernel.json"


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_it_boots_and_runs_the_workload(prepared, kernel, filesystem, tmp_path):
    one = prepared.planned("small")
    folder = one.folder.replace(",ext4/", f",{filesystem}/")
    prepared.fsexp("run", "--run", folder, "--kernel", kernel, "--output", tmp_path / "run.json")
    result = json.loads((tmp_path / "run.json").read_text())
    assert result["outcome"] == "ok", result["reason"]
    hello = result["records"][0]
    # The version of Debian's package, and the name and number that a build always gets here.
    assert hello["kernel"].startswith("6.1.")
    assert hello["build"].startswith("#1 ") and hello["build"].endswith("Thu Jan  1 00:00:00 UTC 1970")
    assert hello["clocksource"] == "tsc"


def test_it_says_how_it_was_built(kernel):
    said = json.loads(kernel.read_text())
    assert said["build"]["configuration"] == "common"
    assert said["build"]["adaptations"] == []  # a current tree needs nothing
    assert {"ext4", "btrfs", "brd"} <= set(said["builtin"])
    assert said["source"]["package"] == "linux-source-6.1"
