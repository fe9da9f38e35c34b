"""A workload on this machine's own filesystem, by the core as an ordinary program.

For trying a workload out, not for measuring: the kernel, the disk and the clock are the host's, and so no figure of it
is ever a result of a study.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from fsexp import config, display, manifest, workload
from fsexp.errors import MachineError, UserError
from fsexp.vm import outcome, record


def given(words: Iterable[str]) -> dict[str, Any]:
    """The parameters that `name=value` words give; a value is read as configurations write it."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UserError(f"a parameter is given as name=value, and '{word}' is not")
        if name in found:
            raise UserError(f"the parameter '{name}' is given twice")
        try:
            found[name] = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            raise UserError(f"the value of the parameter '{name}' can't be read: '{text}'") from None
    return found


def run(core: Path, name: str, parameters: dict[str, Any], directory: Path) -> record.Stream:
    """Replay a workload, or the stream in the file of that name, in an empty folder.

    Raises UserError where one of these is not what it has to be or the workload fails, MachineError where the core
    fails.
    """
    if any(directory.iterdir()):
        raise UserError(f"{directory} must be an empty folder: the workload makes and deletes files in it")
    if not core.exists():
        raise UserError(f"there is no core at {core}; `make -C vmimages/core` builds it")
    with tempfile.TemporaryDirectory(prefix="fsexp-") as scratch:
        stream = Path(name)
        if name in workload.NAMES or not stream.is_file():
            stream = Path(scratch, "ops")
            workload.write(name, config.workload_parameters(name, parameters), stream)
        elif parameters:
            raise UserError(f"{name} is a stream of operations, which takes no parameters")
        # A guest's manifests have paths that no host has: here the core takes them from a folder, by their names.
        manifests = Path(scratch, "manifests")
        manifests.mkdir()
        for path, content in manifest.asked_for(stream):
            (manifests / Path(path).name).write_bytes(content)
        records = Path(scratch, "records.jsonl")
        done = subprocess.run([core, "native", directory, stream.resolve(), records, manifests], check=False)
        got = record.parse(records.read_bytes() if records.exists() else b"")
    word, reason = outcome.decide(b"", got, outcome.Ended("power-off"))
    if word in ("workload-failed", "corrupt"):
        raise UserError(f"{word}: {reason}")
    if word != "ok":
        raise MachineError(f"the core ended with status {done.returncode}: {word}: {reason}")
    return got


_HEADER = ("phase", "s", "operations", "MiB", "passed over")


def table(got: record.Stream) -> Iterator[str]:
    """The phases, a line each, under a header."""
    rows = [
        _HEADER,
        *(
            (
                display.visible(one["name"]),
                display.seconds(one["elapsed_ns"] / 1e9),
                display.count(one["operations"]),
                display.mebibytes(one["bytes"]),
                display.count(one["errors"]),
            )
            for one in got.of("phase")
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *figures in rows:
        cells = [name.ljust(widths[0]), *(text.rjust(width) for text, width in zip(figures, widths[1:], strict=True))]
        yield "  ".join(cells)
