"""The plan: the cells and runs of a study, the folder of each, and a fingerprint of what it depends on."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsexp import digest, whole, workload
from fsexp.config import Config, Experiment
from fsexp.errors import UserError
from fsexp.image import formats
from fsexp.kernel import version

FORMAT = 1

# In the folder that the command is called in, as the fetchers have it.
KERNELS_LOCK = Path("kernels.lock")


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


@dataclass(frozen=True)
class Image:
    """A disk's content before a run: what mkfs is told, and the features that the filesystem then has."""

    key: str
    type: str
    disk_mib: int
    options: tuple[str, ...]
    features: tuple[str, ...]
    packages: tuple[str, ...]


def images(config: Config, lock_file: Path | None = KERNELS_LOCK) -> dict[tuple[str, str], Image]:
    """(filesystem, kernel) -> its image, for every cell of the study.

    Raises UserError where a kernel can't mount a format, as far as its version is known by now.
    """
    known = _known_kernels(config, lock_file)
    return {pair: _image(config, *pair, known) for pair in _cells(config)}


def image_key(config: Config, filesystem: str, kernel: str) -> str:
    """A name for the image of a filesystem for a kernel: what it is mounted with later plays no part.

    One for all kernels unless the format is `era`. Raises UserError as `images` does.
    """
    return _image(config, filesystem, kernel, _known_kernels(config, KERNELS_LOCK)).key


def image(config: Config, key: str) -> Image:
    """The image of that name. Raises UserError where the configuration needs none such."""
    # Once more without the lock file: the first kernel that is fetched writes into it, and may tell more of a version
    # than was known when the names were made.
    for lock_file in (KERNELS_LOCK, None):
        for made in images(config, lock_file).values():
            if made.key == key:
                return made
    raise UserError(f"the configuration needs no image {key}; `fsexp plan` lists those it needs")


def packages(config: Config, type_: str) -> tuple[str, ...]:
    """The packages that the maker VM makes a filesystem of that type with."""
    return tuple(sorted(config.maker.userland.packages or formats.FORMATS[type_].packages))


def userland_key(names: Iterable[str]) -> str:
    """A name for the userland of these packages."""
    return slug("+".join(names))


def userlands(config: Config) -> dict[str, tuple[str, ...]]:
    """Name -> packages, of each userland that the study's images are made with."""
    types = {config.filesystems[filesystem].type for filesystem, _ in _cells(config)}
    return {userland_key(names): names for names in sorted({packages(config, type_) for type_ in types})}


def _cells(config: Config) -> list[tuple[str, str]]:
    """Each (filesystem, kernel) that an experiment crosses, once."""
    return list(
        dict.fromkeys(
            (filesystem, kernel)
            for experiment in config.experiments.values()
            for kernel in experiment.kernels
            for filesystem in experiment.filesystems
        )
    )


def _known_kernels(config: Config, lock_file: Path | None) -> dict[str, formats.Kernel]:
    return {name: _known_kernel(config, name, lock_file) for name in config.kernels}


def _known_kernel(config: Config, name: str, lock_file: Path | None) -> formats.Kernel:
    source = {**config.kernels[name].source(), "mirror": config.mirror}
    debian = source.get("kind", "debian") == "debian" and not source.get("build")
    return formats.Kernel(
        name,
        version.expected(source, lock_file),
        version.least(source, lock_file),
        # Debian's backports set for their release what has gone from the default (XFS_SUPPORT_V4, changelog of
        # 7.3.4-1~bpo13+1); what is built here is configured here. Of both, the configuration is looked at later.
        stock=debian and "-backports" not in source.get("suite", ""),
    )


def _image(config: Config, filesystem: str, kernel: str, known: dict[str, formats.Kernel]) -> Image:
    level = config.filesystems[filesystem]
    peers = [known[other] for crossed, other in _cells(config) if crossed == filesystem] or [known[kernel]]
    maker = config.maker
    try:
        made = formats.resolve(level.type, level.format, known[kernel], peers, maker.userland.suite)
    except UserError as error:
        raise UserError(f"filesystems.{filesystem}.format: {error}") from None
    names = packages(config, level.type)
    content = {
        "type": level.type,
        "disk_mib": level.disk_mib,
        "options": made.options,
        "maker": [maker.kernel.model_dump(), maker.userland.suite, names],
        "machine": config.machine.model_dump(),
    }
    key = f"{level.type}-{digest.of_value(content)[:8]}"
    return Image(key, level.type, level.disk_mib, made.options, made.features, names)


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
