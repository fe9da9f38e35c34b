"""Programs in the guest: what becomes of a configuration, and what is refused."""

import re
import textwrap
from pathlib import Path

import pytest
import yaml
from test_workloads import stream

from fsexp import config, workload
from fsexp.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["coreutils"]


def commands(*lines, **given):
    return {"packages": PACKAGES, "commands": list(lines)} | given


def test_a_line_is_a_phase_named_after_its_program():
    assert stream("commands", **commands("/usr/bin/cp -a 'a b' c", "cp -a c d")) == [
        ("phase", ["cp"]), ("command", [".", ["/usr/bin/cp", "-a", "a b", "c"], []]), ("phase-end", []),
        ("phase", ["cp-2"]), ("command", [".", ["cp", "-a", "c", "d"], []]), ("phase-end", []),
    ]  # fmt: skip


def test_phases_are_unique_whatever_they_are_called():
    lines = ["cp a b", {"argv": ["true"], "phase": "cp-2"}, "cp a b", "cp a b"]
    given = workload.parameters("commands", commands(*lines))
    assert workload.phases("commands", given) == ["cp", "cp-2", "cp-3", "cp-4"]


def test_a_cold_command_begins_on_a_filesystem_mounted_anew():
    made = stream("commands", **commands("true", {"argv": "find .", "cold": True}))
    assert [name for name, _ in made] == ["phase", "command", "phase-end", "remount", "phase", "command", "phase-end"]


def test_a_command_has_its_own_directory_and_variables():
    one = {"argv": "true", "directory": "there/it is", "environment": {"A": "2"}}
    made = stream("commands", **commands("true", one, environment={"A": "1", "B": "x=y"}, directory="here"))
    assert [arguments for name, arguments in made if name == "command"] == [
        ["here", ["true"], ["A=1", "B=x=y"]],
        ["there/it is", ["true"], ["A=2", "B=x=y"]],
    ]


def test_what_is_prepared_has_no_phase():
    tree = stream("tree", directories=9)
    made = stream("commands", **commands("true", prepare={"name": "tree", "directories": 9}, before=["touch a"]))
    own = [one for one in tree if one[0] not in ("phase", "phase-end")]
    assert made[: len(own)] == own
    assert [name for name, _ in made[len(own) :]] == ["remount", "command", "remount", "phase", "command", "phase-end"]


def test_packages_that_are_carried_stand_for_a_pattern():
    given = commands("dpkg --install /fsexp/debs/*.deb", debs=["zlib1g", "hello"])
    ((_, argv, _),) = (arguments for name, arguments in stream("commands", **given) if name == "command")
    assert argv == ["dpkg", "--install", "/fsexp/debs/hello.deb", "/fsexp/debs/zlib1g.deb"]
    names = workload.packages("commands", workload.parameters("commands", given))
    assert sorted(names) == ["coreutils", "deb:hello", "deb:zlib1g"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"packages": PACKAGES}, "commands.commands: is missing"),
        ({"commands": ["true"]}, "commands.packages: is missing"),
        (commands(), "commands.commands: must not be empty"),
        (commands("echo 'a"), "commands.commands.0.argv: can't be split into words: no closing quotation"),
        (commands(""), "commands.commands.0.argv: must not be empty"),
        (commands({"argv": "true", "colt": True}), "commands.commands.0: no such key 'colt'; did you mean 'cold'?"),
        (commands("true", directory="/mnt"), "commands.directory: must lie in the filesystem under test"),
        (commands("true", directory="a/../.."), "commands.directory: must lie in the filesystem under test"),
        (commands("true", debs=["Hello"]), "commands.debs.0: 'Hello' is no name of a Debian package"),
        (commands("true", environment={"A=B": "c"}), "commands.environment: 'A=B' is no name of a variable"),
        (commands("true", prepare={"name": "commands"}), "commands.prepare: its 'name' must be one of create-unlink"),
        (
            commands("true", prepare={"name": "tree", "directorys": 9}),
            "commands.prepare: no such key 'directorys'; did you mean 'directories'?",
        ),
        (commands("true", before=[{"argv": "ls", "cold": True}]), "commands.before.0: no such key 'cold'"),
        (commands("true", packages=["-o"]), "commands.packages.0: '-o' is no name of a Debian package"),
        (commands({"argv": "true", "phase": "a\nb"}), "commands.commands.0.phase: has a character that can't be shown"),
        (commands("true", environment={"A": "x" * 5000}), "commands: a string of a stream has from 0 to 4095 bytes"),
        (commands("true", directory="x" * 5000), "commands: a string of a stream has from 1 to 4095 bytes"),
        (commands("true " + "x" * 5000), "commands.commands.0.argv: a string of a stream has from"),
        (commands("dpkg -i /fsexp/debs/*.deb"), "commands: a command names /fsexp/debs/*.deb, and there are no 'debs'"),
        (
            commands("true", prepare={"name": "tree", "directories": 1}),
            "commands.prepare.directories: must be greater than or equal to 9 (it is 1)",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(given, said):
    with pytest.raises(UserError) as error:
        config.workload_parameters("commands", given)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_the_page_is_right():
    text = (ROOT / "docs/workloads.md").read_text()
    blocks = re.findall(r"^    workload:\n(?:^     .*\n)+", text, re.MULTILINE)
    given = [yaml.safe_load(textwrap.dedent(block))["workload"] for block in blocks]
    phases = []
    for one in given:
        assert one.pop("name") == "commands"
        phases.append(workload.phases("commands", config.workload_parameters("commands", one)))
    assert phases == [["find", "cp", "rm", "sync"], ["cold", "warm", "du"], ["fio"]]
