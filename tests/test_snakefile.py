"""What Snakemake says and does in a checkout whose results are there, without booting anything."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from test_config import GOOD

from fsexp import config, plan

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = Path(sys.executable).parent

pytestmark = pytest.mark.slow


class Checkout:
    """The project's Snakefile and package in a folder of their own, with the files of a study that look made."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("Snakefile", "rules", "fsexp", "reports", "vmimages"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "config.yaml").write_text(yaml.safe_dump(GOOD))
        self.study = config.validate(GOOD)
        self.runs = list(plan.runs(self.study))
        self.results = folder / "results"
        # The commands of the rules run this code, whatever is installed.
        commands = folder / "commands"
        commands.mkdir()
        (commands / "fsexp").write_text(f'#!/bin/sh\nexec {sys.executable} -m fsexp.cli "$@"\n')
        (commands / "fsexp").chmod(0o755)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("FSEXP_")}
        self.environment |= {
            "PATH": f"{commands}:{COMMANDS}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": str(folder / ".home"),
        }

    def call(self, *argv, status=0):
        done = subprocess.run(argv, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def pretend(self):
        """Make the files that the rules would, runs that failed among them, and tell Snakemake."""
        empty = ["maker/kernel.json"]
        empty += [f"userland/{name}/userland.json" for name in plan.userlands(self.study)]
        empty += [f"kernels/{plan.slug(name)}/kernel.json" for name in self.study.kernels]
        for image in plan.images(self.study).values():
            empty += [f"images/{image.key}/image.{kind}" for kind in ("json", "fsimg")]
        empty += [f"ops/{key}.ops" for key in plan.streams(self.study).values()]
        for name in empty:
            (self.results / name).parent.mkdir(parents=True, exist_ok=True)
            (self.results / name).write_text("{}")
        for one in self.runs:
            folder = self.results / one.folder
            folder.mkdir(parents=True)
            described = {"format": 1, "experiment": one.experiment, "levels": one.levels, "seed": one.seed}
            described |= {"clock": "virtual", "outcome": "panic", "reason": "It panicked."}
            (folder / "run.json").write_text(json.dumps(described))
            (folder / "console.log").write_text("")
        self.call("fsexp", "plan", "--output", "results/plan.json")
        self.call("fsexp", "tables")
        self.call("fsexp", "report")
        self.call("snakemake", "--cores", "1", "--touch", "all")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    made = Checkout(tmp_path_factory.mktemp("checkout"))
    made.pretend()
    return made


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\n? [b]\n: 2\n", "fsexp: config.yaml, line 2: a key must be text, and this one is a list or a mapping"),
        ("a: " + "[" * 3000 + "]" * 3000, "fsexp: config.yaml: values are nested too deeply"),
        ('a: "x\0y"\n', "fsexp: config.yaml, line 1: the character U+0000 can't stand in YAML"),
        (yaml.safe_dump(GOOD | {"results": "/"}), "fsexp: results: must be a folder of its own"),
    ],
)
def test_a_configuration_that_is_refused(tmp_path, text, sentence):
    made = Checkout(tmp_path)
    (tmp_path / "config.yaml").write_text(text)
    said = made.call("snakemake", "--cores", "1", "--dry-run", "all", status=1)
    assert said.splitlines()[-1].startswith(sentence)
    assert "Traceback" not in said


def test_with_nothing_to_do_the_last_lines_say_how_the_runs_ended(checkout):
    said = checkout.call("snakemake", "--cores", "1", "all")
    assert "Nothing to be done" in said
    assert "2 runs: 2 panic" in said
    assert "report: results/report/index.html" in said


def test_runs_that_were_removed_are_made_again(checkout):
    shutil.rmtree(checkout.results / checkout.runs[0].folder)
    said = checkout.call("snakemake", "--cores", "1", "--dry-run", "all")
    assert f"results/{checkout.runs[0].folder}/run.json" in said
    assert "Nothing to be done" not in said
    # The tables are a target that Snakemake takes for up to date: then the summary says what they lack.
    said = checkout.call("snakemake", "--cores", "1", "tables")
    assert "2 runs: 1 missing, 1 panic" in said
