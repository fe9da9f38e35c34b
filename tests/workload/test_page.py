"""Workloads as docs/workloads.md has them: programs, and operations of the reader's own."""

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fsexp import ops, workload

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/workloads.md").read_text()
(PAGE,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
# Two of them boot in tests/vm/test_programs.py.
COMMANDS = re.findall(r"^    workload:\n(?:    .*\n)+", TEXT, re.MULTILINE)


def test_the_shortest_has_five_lines():
    assert len(COMMANDS[0].splitlines()) == 5


@pytest.fixture
def log_writer(monkeypatch):
    module = ModuleType("fsexp.workload.log_writer")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(PAGE, "log_writer.py", "exec"), module.__dict__)
    monkeypatch.setitem(workload._MODULES, "log-writer", "log_writer")
    return module


def test_it_is_short():
    assert len(PAGE.splitlines()) < 30


def test_it_runs(log_writer, tmp_path):
    parameters = workload.parameters("log-writer", {"blocks": 10})
    ops.write(tmp_path / "ops", workload.ops("log-writer", parameters))
    there = tmp_path / "there"
    there.mkdir()
    core = ROOT / "vmimages/core/build/core"
    done = subprocess.run([core, "native", there, tmp_path / "ops", tmp_path / "records"], capture_output=True)
    assert done.returncode == 0, (done.stderr, (tmp_path / "records").read_text())
    assert (there / "log").stat().st_size == 10 * 4096
    assert workload.phases("log-writer", parameters) == ["append"]
