"""The plan: the cells and runs of a study, the folder of each, and a fingerprint of what it depends on."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsexp import digest, whole, workload
from fsexp.config import Config, Experiment
from fsexp.errors import UserError

FORMAT = 1


@dataclass(frozen=True)
class Run:
    """One boot of one cell with one seed."""

    experiment: str
    cell: str
    kernel: str
    filesystem: str
    seed: int
    folder: str

    @property
    def levels(self) -> dict[str, str]:
        """Factor -> level."""
        return {"kernel": self.kernel, "filesystem": self.filesystem}


def slug(label: str) -> str:
    """A folder's name for a label: safe in shells, Make-like tools, URLs and on every filesystem; no two alike."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9.+-]+", "-", plain).strip("-.")[:60]
    if plain == label:
        return plain
    return f"{plain or 'x'}~{digest.of_value(label)[:6]}"


def runs(config: Config) -> Iterator[Run]:
    """Every run of the study, in the order of the configuration."""
    for name, experiment in config.experiments.items():
        top = slug(name)
        for kernel in experiment.kernels:
            for filesystem in experiment.filesystems:
                cell = f"{slug(kernel)},{slug(filesystem)}"
                for seed in experiment.seeds:
                    yield Run(name, cell, kernel, filesystem, seed, f"runs/{top}/{cell}/{seed}")


def run(config: Config, folder: str) -> Run:
    """The run that belongs in `folder`, named below the results folder or with it, or by a file in it.

    Raises UserError where the configuration has none.
    """
    wanted = Path(os.path.normpath(folder))
    results = Path(config.results).absolute()
    if wanted.absolute().is_relative_to(os.path.normpath(results)):
        wanted = wanted.absolute().relative_to(os.path.normpath(results))
    names = (wanted.as_posix(), wanted.parent.as_posix())
    for candidate in runs(config):
        if candidate.folder in names:
            return candidate
    raise UserError(f"the configuration has no run {folder}; `fsexp plan` lists them")


def workload_of(experiment: Experiment) -> tuple[str, Any]:
    """An experiment's workload and its parameters, defaults filled in."""
    given = dict(experiment.workload)
    name = given.pop("name")
    return name, workload.parameters(name, given)


def ops_key(experiment: Experiment) -> str:
    """A name for the experiment's stream of operations: two experiments with the same one share it."""
    name, parameters = workload_of(experiment)
    return f"{name}-{digest.of_value(parameters.model_dump())[:8]}"


def image_key(config: Config, filesystem: str) -> str:
    """A name for the image of a filesystem: what it is mounted with later plays no part."""
    level = config.filesystems[filesystem]
    content = {
        "type": level.type,
        "disk_mib": level.disk_mib,
        "format": level.format,
        "maker": config.maker.model_dump(),
        "machine": config.machine.model_dump(),
    }
    return f"{level.type}-{digest.of_value(content)[:8]}"


def kernel_fingerprint(config: Config, name: str) -> str:
    """Changes when the kernel of that name has to be fetched anew."""
    return digest.of_value([config.kernels[name].source(), config.mirror])


def fingerprint(config: Config, one: Run) -> str:
    """Changes when the configuration changes what this run measures or when it is given up.

    Labels and titles play no part. Limits do, so that raising one makes the runs that it ended again; the cache has
    the others, and boots none of them.
    """
    name, parameters = workload_of(config.experiments[one.experiment])
    return digest.of_value(
        [
            config.clock,
            config.kernels[one.kernel].source(),
            config.filesystems[one.filesystem].model_dump(),
            config.machine.model_dump(),
            config.limits.model_dump(),
            name,
            parameters.model_dump(),
            one.seed,
        ]
    )


def describe(config: Config) -> dict[str, Any]:
    """The plan as the tables and the report read it (docs/experiments.md lists the members)."""
    experiments = {}
    for name, experiment in config.experiments.items():
        work, parameters = workload_of(experiment)
        experiments[name] = {
            "title": experiment.title,
            "question": experiment.question,
            "workload": {"name": work, "parameters": parameters.model_dump()},
            "factors": {"kernel": experiment.kernels, "filesystem": experiment.filesystems},
            "seeds": experiment.seeds,
            "phases": workload.phases(work, parameters),
            "published": [entry.model_dump() for entry in experiment.published],
        }
    return {
        "format": FORMAT,
        "study": {"title": config.title, "clock": config.clock},
        "experiments": experiments,
        "runs": [
            {
                "experiment": one.experiment,
                "cell": one.cell,
                "levels": one.levels,
                "seed": one.seed,
                "folder": one.folder,
            }
            for one in runs(config)
        ],
    }


def write(config: Config, path: Path) -> None:
    """Write the plan as JSON."""
    whole.write_json(path, describe(config))
