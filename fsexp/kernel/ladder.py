"""Ladders: an entry of the configuration that stands for all of a suite's kernels between two versions."""

from pathlib import Path
from typing import Any

from fsexp.errors import MachineError, UserError
from fsexp.kernel import debian


def expand(data: dict[str, Any], lock_file: Path = Path("kernels.lock")) -> dict[str, Any]:
    """The configuration with each ladder replaced by its kernels, where it is defined and where it is named.

    data: a valid configuration as JSON would hold it, defaults filled in. Without a ladder it is returned as
    it is. A ladder `newest` becomes `newest 6.16.12`, `newest 6.17.8`, ..., oldest first. What the lock file
    has needs no network. UserError or MachineError names the ladder that can't be had.
    """
    kernels: dict[str, Any] = {}
    rungs: dict[str, list[str]] = {}
    for name, entry in data["kernels"].items():
        if not (entry.get("debian") or {}).get("ladder"):
            rungs[name] = [name]
            kernels[name] = entry
            continue
        found = _climb(name, entry["debian"], data, lock_file)
        rungs[name] = [f"{name} {version}" for version, _ in found]
        for label, (_, spec) in zip(rungs[name], found, strict=True):
            if label in data["kernels"]:
                raise UserError(f"kernels.{label}: the ladder '{name}' has a kernel of that name; give it another")
            kernels[label] = {**entry, "debian": spec}
    if list(kernels) == list(data["kernels"]):
        return data
    experiments = {
        name: {**experiment, "kernels": [label for level in experiment["kernels"] for label in rungs[level]]}
        for name, experiment in data["experiments"].items()
    }
    return {**data, "kernels": kernels, "experiments": experiments}


def _climb(name: str, source: dict, data: dict, lock_file: Path) -> list[tuple[str, dict]]:
    where = {"mirror": data["mirror"], "snapshot_mirror": data["snapshot_mirror"]}
    try:
        found = debian.ladder({**source, **where}, Path(data["cache"]), lock_file)
    except (UserError, MachineError) as error:
        raise type(error)(f"kernels.{name}: {error}") from error
    return [(version, {key: value for key, value in spec.items() if key not in where}) for version, spec in found]
