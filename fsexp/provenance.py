"""Where the figures of a report come from: machine, kernels, userland, images, command lines.

Everything here is read from files that other steps wrote. A file that cannot be read is shown as
that, since a report must not fail for it.
"""

import json
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fsexp.table import read_json

# A property with more values than this (one for each seed, say) shows the first and their number.
VALUES_SHOWN = 6


@dataclass
class Machine:
    """What the runs say of the virtual machine they ran in, gathered one run at a time.

    Each Counter has the value as its key, the number of runs that had it as its value.
    """

    properties: dict[str, Counter] = field(default_factory=dict)
    command_lines: Counter = field(default_factory=Counter)
    qemu_command: str = ""
    qemu_run: str = ""

    def add(self, document: dict, folder: str) -> None:
        """Take in a run.json."""
        machine = document.get("machine")
        for name, value in _flat(machine if isinstance(machine, dict) else {}):
            self.properties.setdefault(name, Counter())[value] += 1
        line = document.get("command_line")
        if isinstance(line, str):
            self.command_lines[line] += 1
        argv = document.get("qemu_argv")
        if not self.qemu_command and isinstance(argv, list) and argv:
            self.qemu_command = shlex.join(map(str, argv))
            self.qemu_run = folder

    def rows(self) -> list[tuple[str, list[str]]]:
        """(property, its values as they are shown)."""
        return [(name, _values(values)) for name, values in self.properties.items()]


def kernels(results: Path, runs: list[dict]) -> list[dict]:
    """One row a folder of results/kernels."""
    used = Counter(row["kernel_digest"] for row in runs)
    rows = []
    for name, document, error in _documents(results, "kernels/*/kernel.json"):
        source = _dict(document.get("source"))
        rows.append(
            {
                "name": name,
                "problem": error or unavailable(document),
                "release": document.get("release"),
                "source": _words((key, value) for key, value in source.items() if key != "packages"),
                "packages": packages(source),
                "digests": [
                    ("kernel", document.get("digest")),
                    ("image", _dict(document.get("image")).get("sha256")),
                    ("configuration", _dict(document.get("config")).get("sha256")),
                ],
                "modules": sorted(_dict(document.get("modules"))),
                "runs": used[document.get("digest")] if document.get("digest") else 0,
            }
        )
    return rows


def images(results: Path, runs: list[dict]) -> list[dict]:
    """One row a folder of results/images."""
    used = Counter(row["image_digest"] for row in runs)
    return [
        {
            "name": document.get("label") or name,
            "problem": error or unavailable(document),
            "filesystem": document.get("filesystem"),
            "command": document.get("command"),
            "bytes": document.get("bytes"),
            "digest": document.get("digest"),
            "runs": used[document.get("digest")] if document.get("digest") else 0,
        }
        for name, document, error in _documents(results, "images/*/image.json")
    ]


def userlands(results: Path) -> list[dict]:
    """One row for each folder in results/userland."""
    return [
        {
            "name": name,
            "problem": error or unavailable(document),
            "digest": document.get("digest"),
            "packages": packages(document),
        }
        for name, document, error in _documents(results, "userland/*/userland.json")
    ]


def load(path: Path) -> tuple[dict, str]:
    """A description's content and ""; {} and the error where it can't be used."""
    try:
        document = read_json(path)
    except (OSError, ValueError) as error:
        return {}, f"{path.name} cannot be read: {error}"
    return (document, "") if isinstance(document, dict) else ({}, f"{path.name} is not an object")


def unavailable(document: dict) -> str:
    """Why what a description is of can't be had; empty when it can."""
    reason = document.get("unavailable")
    return f"not available: {reason}" if reason else ""


def _documents(results: Path, pattern: str) -> Iterable[tuple[str, dict, str]]:
    """(name of the folder, content, error) of each such file."""
    for path in sorted(results.glob(pattern)):
        yield path.parent.name, *load(path)


def packages(document: dict) -> list[dict]:
    """The packages of a description or of its source."""
    found = document.get("packages")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _dict(value: Any) -> dict:
    return value if isinstance(value, dict) else {}


def _words(members: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{key} {_text(value)}" for key, value in members)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flat(value: dict, prefix: str = "") -> Iterable[tuple[str, str]]:
    for name, member in value.items():
        if isinstance(member, dict):
            yield from _flat(member, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", _text(member)


def _values(values: Counter) -> list[str]:
    if len(values) == 1:
        return list(values)
    shown = list(values.items())[: VALUES_SHOWN if len(values) <= VALUES_SHOWN else 1]
    texts = [f"{value} ({runs} runs)" for value, runs in shown]
    rest = len(values) - len(shown)
    return [*texts, f"and {rest} other values"] if rest else texts
