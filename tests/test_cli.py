"""The `fsexp` command: exit statuses, and one sentence for what is wrong."""

import json
import os
import signal
import subprocess
import sys

import pytest
from test_config import GOOD

from fsexp import apt, cli
from fsexp.errors import MachineError, UserError


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Call `fsexp` in a folder with a configuration; returns (exit status, what it wrote to stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(json.dumps(GOOD))
    (tmp_path / "empty").mkdir()

    def start(*words):
        try:
            status = cli.main(list(words))
        except SystemExit as error:  # argparse's
            status = error.code
        return status, capsys.readouterr().err

    return start


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ops", "--show", "nope"], "argument --show: there is no file nope"),
        (["ops", "--show", "empty"], "argument --show: empty is a folder"),
        (["ops", "--show", ""], "argument --show: a path must not be empty"),
        (["ops", "--show", "config.yaml"], "this is not a stream of operations: it does not begin with FSEXPOPS"),
        (["ops"], "name a stream (`fsexp plan` lists them), or one to --show"),
        (["plan", "--output", ""], "argument --output: a path must not be empty"),
        (["plan", "--output", "empty"], "argument --output: empty is a folder; name a file"),
        (["plan", "--config", "nope"], "there is no configuration file nope"),
        (["plan", "--config", "empty"], "the configuration file empty can't be read: Is a directory"),
        (["tables", "--output", " "], "argument --output: a path must not be empty"),
        (["tables"], "there is no plan at results/plan.json; `fsexp plan --output results/plan.json` makes it"),
        (["tables", "--plan", "nope"], "argument --plan: there is no file nope"),
        (
            ["tables", "--plan", "config.yaml"],
            "config.yaml: not a plan of format 1; `fsexp plan --output config.yaml` makes it again",
        ),
        (["report", "--tables", "nope"], "argument --tables: there is no folder nope"),
        (["run", "--run", "x"], "the configuration has no run x; `fsexp plan` lists them"),
        (["run", "--run", "x", "--core", "nope"], "argument --core: there is no file nope"),
        (["run"], "the following arguments are required: --run"),
        (
            ["kernel", "newest", "--output", "elsewhere/linux.json"],
            "argument --output: the file must be called kernel.json, for what reads it looks for that name",
        ),
        (["kernel", "nope"], "no kernel 'nope' in the configuration; known are debian-6.1, newest"),
        (["native", "x", "--directory", "nope"], "argument --directory: there is no folder nope"),
        (["frobnicate"], "argument COMMAND: invalid choice: 'frobnicate'"),
        (["summary"], "there is no table of runs in results; `snakemake all` makes it"),
    ],
)
def test_the_users_errors(call, words, said):
    status, err = call(*words)
    assert status == 1
    assert err.startswith(f"fsexp: {said}")
    assert err.count("\n") == 1
    assert "Errno" not in err and "Traceback" not in err


def test_an_empty_folder_of_tables(call):
    assert call("plan", "--output", "plan.json")[0] == 0
    status, err = call("report", "--plan", "plan.json", "--tables", "empty")
    assert (status, err) == (1, "fsexp: there is no table empty/runs.parquet; `fsexp tables` makes it\n")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no table"])
def test_a_table_that_is_none(call, tmp_path, content):
    assert call("plan", "--output", "plan.json")[0] == 0
    (tmp_path / "empty" / "runs.parquet").write_bytes(content)
    status, err = call("report", "--plan", "plan.json", "--tables", "empty")
    assert (status, err) == (1, "fsexp: empty/runs.parquet is no table; `fsexp tables` makes it again\n")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("experiments", {"e": {}}),
        ("experiments", {"create-unlink": []}),
        ("runs", [{}]),
        ("runs", [1]),
        ("runs", [{"experiment": "other", "levels": {}, "seed": 1, "folder": "x"}]),
        ("runs", [{"experiment": "create-unlink", "levels": {"kernel": "a"}, "seed": 1, "folder": "x"}]),
    ],
)
@pytest.mark.parametrize("command", ["tables", "report"])
def test_a_plan_that_is_damaged(call, tmp_path, command, member, value):
    assert call("plan", "--output", "plan.json")[0] == 0
    document = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps(document | {member: value}))
    status, err = call(command, "--plan", "plan.json", *(["--tables", "empty"] if command == "report" else []))
    assert status == 1
    assert "of the plan is damaged; `fsexp plan --output plan.json` makes it again" in err


@pytest.mark.parametrize(("error", "status"), [(UserError("no such suite"), 1), (MachineError("no network"), 2)])
def test_a_kernel_that_cannot_be_had(call, tmp_path, monkeypatch, error, status):
    def fail(*_):
        raise error

    monkeypatch.setattr(apt, "pinned", fail)
    description = tmp_path / "results" / "kernels" / "newest" / "kernel.json"
    # By hand it is what was asked for, and failed.
    assert call("kernel", "newest") == (status, f"fsexp: {error}\n")
    assert not description.exists()
    # For the rules it is an outcome of the cells.
    assert call("kernel", "newest", "--or-unavailable") == (0, f"fsexp: kernel newest can't be had: {error}\n")
    assert json.loads(description.read_text())["unavailable"] == str(error)
    # It is asked for again at the next start.
    assert call("kernel", "newest", "--or-unavailable")[0] == 0
    (tmp_path / "config.yaml").write_text(json.dumps(GOOD | {"strict": True}))
    assert call("kernel", "newest", "--or-unavailable")[0] == status


def test_an_error_of_the_system_names_the_file(call, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device", "results/x")

    monkeypatch.setattr("fsexp.plan.write", fail)
    assert call("plan", "--output", "plan.json") == (2, "fsexp: results/x: No space left on device\n")


# Ends only by a signal, and takes a second to clean up.
_SLOW = """
import sys, time
from fsexp import cli

def wait(_):
    try:
        print("waiting", flush=True)
        time.sleep(60)
    finally:
        print("cleaning", flush=True)
        time.sleep(1)
        print("clean", flush=True)

cli._doctor = wait
sys.exit(cli.main(["doctor"]))
"""


@pytest.fixture
def slow():
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline() == "waiting\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("again", [0, 1])
def test_an_interrupt_cleans_up_once(slow, number, again):
    os.kill(slow.pid, number)
    assert slow.stdout.readline() == "cleaning\n"
    for _ in range(again):
        os.kill(slow.pid, number)
    out, err = slow.communicate(timeout=20)
    assert slow.returncode == 130
    assert out == "clean\n"
    assert err.splitlines()[-1] == "fsexp: interrupted; nothing is left running"
    assert err.count("once more, and it is left as it is") == again
    assert "Traceback" not in err


def test_the_third_interrupt_ends_it_at_once(slow):
    os.kill(slow.pid, signal.SIGINT)
    assert slow.stdout.readline() == "cleaning\n"
    os.kill(slow.pid, signal.SIGINT)
    assert "once more" in slow.stderr.readline()
    os.kill(slow.pid, signal.SIGINT)
    out, err = slow.communicate(timeout=20)
    assert (slow.returncode, out, err) == (130, "", "")
