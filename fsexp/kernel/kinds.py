"""The kinds of kernels: from a source of the configuration to a kernel's folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fsexp.kernel import binary, build, debian, source


def make(
    spec: dict[str, Any], cache: Path, lock_file: Path, output: Path, jobs: int = 1, leave_out: Iterable[Path] = ()
) -> dict[str, Any]:
    """Put the kernel of `spec` into the folder `output`, replacing it; returns what its kernel.json holds.

    spec: config.Kernel.source(), with the study's mirrors. jobs: processes that may build at once. leave_out: files
    and folders of the study, no part of a source tree that they lie in. Raises UserError or MachineError, saying why
    it can't be had, BuildFailed where its source does not build; `output` is then as it was.
    """
    if spec["kind"] == "image":
        return binary.fetch(spec, output)
    if spec["kind"] == "debian" and not spec.get("build"):
        return debian.fetch(spec, cache, lock_file, output)
    found = source.obtain(spec, cache, lock_file, leave_out)
    built = build.build(found, recipe(spec), cache, jobs)
    return binary.built(built, {"kind": spec["kind"], **found.identity}, output)


def recipe(spec: dict[str, Any]) -> build.Recipe:
    """How a kernel is configured and with what it is built."""
    own = Path(spec["config"]) if spec.get("config") else None
    return build.Recipe(own, tuple(map(Path, spec.get("fragments", ()))), spec.get("compiler", "gcc"))
