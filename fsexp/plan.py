"""The plan: the cells and runs of a study, the folder of each, and a fingerprint of what it depends on."""

from __future__ import annotations

import itertools
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsexp import digest, whole, workload
from fsexp import disk as disks
from fsexp.config import RAM, Config, Disk, Experiment
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
    disk: str
    variant: str  # empty where the experiment has none
    seed: int
    folder: str

    @property
    def levels(self) -> dict[str, str]:
        """Factor -> level."""
        return {
            "kernel": self.kernel, "filesystem": self.filesystem, "disk": self.disk, "variant": self.variant,
        }  # fmt: skip

    @property
    def label(self) -> str:
        """The cell in words, without what most experiments don't vary."""
        return ", ".join([self.kernel, self.filesystem, *besides(self.disk, self.variant)])


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
        levels = experiment.kernels, experiment.filesystems, experiment.disks, experiment.variants or [""]
        for crossed in itertools.product(*levels):
            cell = _cell(*crossed)
            for seed in experiment.seeds:
                yield Run(name, cell, *crossed, seed, f"runs/{top}/{cell}/{seed}")


def _cell(kernel: str, filesystem: str, disk: str, variant: str) -> str:
    return ",".join(map(slug, (kernel, filesystem, *besides(disk, variant))))


def besides(disk: str, variant: str) -> list[str]:
    """Of the two, what is named beside kernel and filesystem: nothing where the experiment need not say it."""
    return [disk, variant] if variant else [disk] if disk != RAM else []


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


def workload_of(experiment: Experiment, variant: str = "") -> tuple[str, Any]:
    """An experiment's workload and its parameters in that variant, defaults filled in."""
    given = experiment.workload | experiment.variants.get(variant, {})
    name = given.pop("name")
    return name, workload.parameters(name, given)


def ops_key(experiment: Experiment, variant: str = "") -> str:
    """A name for the stream of operations of a variant: two with the same one share it."""
    name, parameters = workload_of(experiment, variant)
    return f"{name}-{digest.of_value(parameters.model_dump())[:8]}"


def guest_packages(experiment: Experiment, variant: str = "") -> tuple[str, ...]:
    """The packages that the guest of a variant runs programs from."""
    return tuple(sorted(set(workload.packages(*workload_of(experiment, variant)))))


def guest_userlands(config: Config) -> dict[tuple[str, str], str]:
    """(experiment, variant) -> the name of its guests' userland, of those that need one."""
    needed = {pair: guest_packages(config.experiments[pair[0]], pair[1]) for pair in streams(config)}
    return {pair: userland_key(names) for pair, names in needed.items() if names}


def calibrations(config: Config) -> list[tuple[str, str]]:
    """(kernel, disk) that are measured beside the runs: of each kernel, disks that have all kinds of its devices.

    Disks of one device come first; a RAM disk has no figures to be compared with.
    """
    crossed = dict.fromkeys(
        (kernel, disk)
        for experiment in config.experiments.values()
        for kernel in experiment.kernels
        for disk in experiment.disks
    )
    made = {disk: disks.layout(config.disks[disk], 0).devices for _, disk in crossed}
    covered: set[tuple] = set()
    found = []
    for kernel, disk in sorted(crossed, key=lambda pair: len(made[pair[1]])):
        kinds = {(kernel, one.model, one.latency_us, one.queue_depth) for one in made[disk] if one.latency_us}
        if not kinds <= covered:
            covered |= kinds
            found.append((kernel, disk))
    return found


def streams(config: Config) -> dict[tuple[str, str], str]:
    """(experiment, variant) -> the name of its stream of operations."""
    return {
        (name, variant): ops_key(experiment, variant)
        for name, experiment in config.experiments.items()
        for variant in experiment.variants or [""]
    }


@dataclass(frozen=True)
class Image:
    """What lies on a run's disk before it: what mkfs is told, and the features that the filesystem then has.

    disks_mib: the size of each device that it is made on.
    """

    key: str
    type: str
    disks_mib: tuple[int, ...]
    options: tuple[str, ...]
    features: tuple[str, ...]
    packages: tuple[str, ...]

    @property
    def disk_mib(self) -> int:
        """The size of the first device."""
        return self.disks_mib[0]


def images(config: Config, lock_file: Path | None = KERNELS_LOCK) -> dict[tuple[str, str, str], Image]:
    """(filesystem, kernel, disk) -> its image, for every cell of the study.

    Raises UserError where a kernel can't mount a format, as far as its version is known by now.
    """
    cells = _cells(config)
    known = _known_kernels(config, lock_file)
    crossed: dict[str, dict[str, formats.Kernel]] = {}
    for filesystem, kernel, _ in cells:
        crossed.setdefault(filesystem, {})[kernel] = known[kernel]
    peers = {filesystem: list(kernels.values()) for filesystem, kernels in crossed.items()}
    made: dict[tuple[str, str, tuple[int, ...]], Image] = {}
    found = {}
    for filesystem, kernel, disk in cells:
        # Most cells differ in nothing that an image depends on.
        wanted = filesystem, kernel, sizes_mib(config, filesystem, disk)
        if wanted not in made:
            made[wanted] = _image(config, *wanted, known[kernel], peers[filesystem])
        found[filesystem, kernel, disk] = made[wanted]
    return found


def sizes_mib(config: Config, filesystem: str, disk: str) -> tuple[int, ...]:
    """MiB of each device that the filesystem is made on."""
    return config.disks[disk].sizes_mib(config.filesystems[filesystem].disk_mib)


def image_key(config: Config, filesystem: str, kernel: str, disk: str = RAM) -> str:
    """A name for the image of a filesystem for a kernel: what it is mounted with later plays no part.

    One for all kernels unless the format is `era`. Raises UserError as `images` does.
    """
    known = _known_kernels(config, KERNELS_LOCK)
    peers = dict.fromkeys(other for crossed, other, _ in _cells(config) if crossed == filesystem) or [kernel]
    sizes = sizes_mib(config, filesystem, disk)
    return _image(config, filesystem, kernel, sizes, known[kernel], [known[other] for other in peers]).key


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
    """Name -> packages, of each userland that the study's images are made with, or its guests run programs from."""
    types = {config.filesystems[name].type for one in config.experiments.values() for name in one.filesystems}
    needed = {packages(config, type_) for type_ in types}
    needed |= {guest_packages(config.experiments[name], variant) for name, variant in streams(config)}
    return {userland_key(names): names for names in sorted(needed) if names}


def _cells(config: Config) -> list[tuple[str, str, str]]:
    """Each (filesystem, kernel, disk) that an experiment crosses, once."""
    return list(
        dict.fromkeys(
            (filesystem, kernel, disk)
            for experiment in config.experiments.values()
            for kernel in experiment.kernels
            for filesystem in experiment.filesystems
            for disk in experiment.disks
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


def _image(
    config: Config,
    filesystem: str,
    kernel: str,
    disks_mib: tuple[int, ...],
    known: formats.Kernel,
    peers: list[formats.Kernel],
) -> Image:
    level = config.filesystems[filesystem]
    maker = config.maker
    try:
        made = formats.resolve(level.type, level.format, known, peers, maker.userland.suite, level.options)
    except UserError as error:
        raise UserError(f"filesystems.{filesystem}.format: {error}") from None
    names = packages(config, level.type)
    content = {
        "type": level.type,
        "disk_mib": disks_mib[0],
        "options": made.options,
        "maker": [maker.kernel.model_dump(), maker.userland.suite, names],
        "machine": config.machine.model_dump(),
    }
    if len(disks_mib) > 1:
        content["disks_mib"] = disks_mib
    key = f"{level.type}-{digest.of_value(content)[:8]}"
    return Image(key, level.type, disks_mib, made.options, made.features, names)


def kernel_fingerprint(config: Config, name: str) -> str:
    """Changes when the kernel of that name has to be fetched anew."""
    return digest.of_value([config.kernels[name].source(), config.mirror])


def fingerprint(config: Config, one: Run) -> str:
    """Changes when the configuration changes what this run measures or when it is given up.

    Labels and titles play no part. Limits do, so that raising one makes the runs that it ended again; the cache has
    the others, and boots none of them.
    """
    name, parameters = workload_of(config.experiments[one.experiment], one.variant)
    programs = workload.packages(name, parameters)
    return digest.of_value(
        [
            config.clock,
            config.kernels[one.kernel].source(),
            config.filesystems[one.filesystem].model_dump(),
            config.disks[one.disk].model_dump(),
            config.machine.model_dump(),
            config.limits.model_dump(),
            name,
            parameters.model_dump(),
            [config.maker.userland.suite, config.mirror, programs] if programs else None,
            one.seed,
        ]
    )


def describe(config: Config) -> dict[str, Any]:
    """The plan as the tables and the report read it (docs/experiments.md lists the members)."""
    experiments = {}
    for name, experiment in config.experiments.items():
        variants = {variant: workload_of(experiment, variant) for variant in experiment.variants or [""]}
        described = {
            variant: {"parameters": parameters.model_dump(), "phases": workload.phases(work, parameters)}
            for variant, (work, parameters) in variants.items()
        }
        first = next(iter(described.values()))
        experiments[name] = {
            "title": experiment.title,
            "question": experiment.question,
            "workload": {"name": experiment.workload["name"], "parameters": first["parameters"]},
            "factors": {
                "kernel": experiment.kernels,
                "filesystem": experiment.filesystems,
                "disk": experiment.disks,
                "variant": list(described),
            },
            "seeds": experiment.seeds,
            "phases": list(dict.fromkeys(phase for one in described.values() for phase in one["phases"])),
            "variants": described,
            "published": [entry.model_dump(exclude_none=True) for entry in experiment.published],
        }
    return {
        "format": FORMAT,
        "study": {"title": config.title, "clock": config.clock},
        "experiments": experiments,
        "disks": {
            name: _described_disk(config.disks[name])
            for name in dict.fromkeys(name for one in config.experiments.values() for name in one.disks)
        },
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


def _described_disk(one: Disk) -> dict[str, Any]:
    """A disk with its models' figures filled in; `mib` is None where it is the filesystem's."""
    made = disks.layout(one, 0).devices
    return {
        "bcache": one.bcache,
        "devices": [
            {
                "name": part.name,
                "model": part.model,
                "latency_us": device.latency_us,
                "queue_depth": device.queue_depth,
                "mib": part.mib,
            }
            for part, device in zip(one.parts, made, strict=True)
        ],
    }


def write(config: Config, path: Path) -> None:
    """Write the plan as JSON."""
    whole.write_json(path, describe(config))
