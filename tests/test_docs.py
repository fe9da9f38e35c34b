"""The documentation names what exists: commands, options, keys, files."""

import argparse
import re
from pathlib import Path

import pytest
import yaml

from fsexp import __version__, cli, config, disk, workload
from fsexp.vm import domain

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [ROOT / "README.md", *ROOT.glob("docs/*.md"), ROOT / "benchmarks/README.md", ROOT / "vmimages/core/README.md"]
)
CODE = re.compile(r"`([^`\n]+)`|^ {4}(.+)$", re.MULTILINE)
COMMAND = re.compile(r"\bfsexp ((?:[a-z]\S*)(?: [^|;#`]*)?)")
WHOLE = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def subcommands():
    parser = cli._parser()
    return next(action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))


def commands(text):
    """Each `fsexp ...` in code, as its words."""
    for match in CODE.finditer(text):
        for command in COMMAND.finditer(match[1] or match[2]):
            yield command[1].split()


def anchors(text):
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("text", ["`fsexp frobnicate`", "    ./run fsexp run --twice"])
def test_a_wrong_command_would_be_seen(text):
    words = next(commands(text))
    known = subcommands()
    assert words[0] not in known or not set(words[1:]) <= set(known[words[0]]._option_string_actions)


@pages
def test_commands_and_their_options_exist(page):
    known = subcommands()
    for name, *words in commands(page.read_text()):
        assert name in known, f"fsexp {name}"
        for word in words:
            if word.startswith("-"):
                assert word.split("=")[0] in known[name]._option_string_actions, f"fsexp {name} {word}"


@pages
def test_links_resolve(page):
    for target in LINK.findall(page.read_text()):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.exists(), target
        if anchor:
            assert anchor in anchors(place.read_text()), target


@pages
def test_whole_configurations_are_valid(page):
    for block in WHOLE.findall(page.read_text()):
        config.validate(yaml.safe_load(block))


def test_every_key_of_the_configuration_is_explained():
    schema = config.schema()
    keys = set()
    for part in (schema, *schema["$defs"].values()):
        keys |= set(part.get("properties", {}))
    for name in workload.NAMES:
        keys |= {name, *workload.model(name).model_fields}
    text = (ROOT / "docs/experiments.md").read_text()
    assert not {key for key in keys if f"`{key}`" not in text}


def test_every_kernel_argument_is_explained():
    given = domain.command_line(config.Machine().model_dump(), disk.arguments(disk.ram(128))).split()
    text = (ROOT / "docs/clocks.md").read_text()
    assert not {argument for argument in given if argument.partition("=")[0] not in text}


def test_benchmarks_are_all_described():
    text = (ROOT / "benchmarks/README.md").read_text()
    scripts = [path for path in ROOT.glob("benchmarks/*.py") if "def main" in path.read_text()]
    assert scripts and not {path.name for path in scripts if f"`{path.name}`" not in text}


def test_citation_is_whole():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "version", "authors", "license"} <= set(citation)
    assert str(citation["version"]) == __version__
    assert citation["license"] == "MIT"
