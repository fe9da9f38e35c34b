"""One run: a cell's guest booted with one seed, what it sent, how it ended, everything kept.

A run's identity is the digest of what goes in: kernel, initramfs (core, modules, image, operations, set-up), command
line, machine description, seed. Runs that the guest itself ended are kept under that digest in the cache, so that a
renamed label, a removed results folder or a level changed back boots nothing. One that the host gave up is not: with
other limits, or on a quieter machine, it may end otherwise.
"""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsexp import digest, disk, manifest, plan, tree, userland, whole
from fsexp.config import Config
from fsexp.errors import KernelRefused, MachineError, UserError
from fsexp.image import formats
from fsexp.kernel import ModuleMissing, version
from fsexp.vm import domain, guest, outcome, record
from fsexp.vm.guest import Guest

FORMAT = 1
FILES = ("console.log", "records.jsonl", "domain.xml")


@dataclass(frozen=True)
class Inputs:
    """The files a run is made from."""

    kernel: Path
    image: Path
    ops: Path
    core: Path
    userland: Path | None = None  # where the workload runs programs


@dataclass(frozen=True)
class Booting:
    """A guest ready to be started."""

    kernel: guest.Kernel
    initramfs: bytes
    command_line: str
    settings: dict[str, Any]  # config.Machine
    uuid: str

    @property
    def machine(self) -> dict[str, Any]:
        """The machine's description."""
        return domain.machine(self.settings)

    @property
    def identity(self) -> str:
        """The digest of everything the guest's digits depend on."""
        return digest.of_value(
            {
                "kernel": self.kernel.description["image"]["sha256"],
                "initramfs": digest.of_bytes(self.initramfs),
                "machine": domain.fingerprint(self.settings, self.uuid, self.command_line),
            }
        )


def make(config: Config, one: plan.Run, inputs: Inputs, output: Path, again: bool = False) -> dict[str, Any]:
    """Make the run, or take it from the cache, into the folder `output`; returns what run.json holds.

    again: boot even where the cache has the run, and compare the records with it.
    Raises UserError for a missing input, MachineError where the outcome is `infrastructure`, after all attempts.
    """
    labels = {
        "format": FORMAT,
        "experiment": one.experiment,
        "cell": one.cell,
        "levels": one.levels,
        "clock": config.clock,
        "seed": one.seed,
        "repeat": shlex.join(
            ["./run", "fsexp", "run", "--again", "--config", f"{config.results}/config.json", "--run", one.folder]
        ),
    }
    description = guest.read_kernel(inputs.kernel).description
    if "unavailable" in description:
        result = _without_boot(description.get("outcome", "no-kernel"), description["unavailable"])
        return _deliver(result, None, labels, output)
    image = guest.read_image(inputs.image)
    if "unavailable" in image:
        result = _without_boot(image.get("outcome", "unsupported"), image["unavailable"], description.get("release"))
        return _deliver(result, None, labels, output)
    try:
        booting = prepare(config, one, inputs)
    except (ModuleMissing, formats.Unsupported, disk.Unsupported, userland.Unsupported) as error:
        result = _without_boot("unsupported", str(error), description.get("release"))
        return _deliver(result, None, labels, output)
    store = Path(config.cache) / "runs" / booting.identity
    stored = _stored(store)
    if again or stored is None:
        try:
            result, files = _attempts(config, booting)
        except KernelRefused as error:
            result = _without_boot(error.outcome, str(error), description.get("release"))
            return _deliver(result, None, labels, output)
        try:
            result |= _provenance(config, one, inputs, booting)
            if stored is not None:
                _compare(stored, result, store)
            if result["ended"] == "power-off" and result["outcome"] != "infrastructure":
                _keep(result, files, store)
            _deliver(result, files, labels, output)
        finally:
            shutil.rmtree(files)
    else:
        result = stored
        _deliver(result, store, labels, output)
    if result["outcome"] == "infrastructure":
        raise MachineError(f"{one.folder}: {result['reason']}; the console is {output}/console.log")
    return result


def prepare(config: Config, one: plan.Run, inputs: Inputs) -> Booting:
    """The run's guest, described. Raises ModuleMissing or Unsupported where the kernel can't do what the run needs."""
    kernel = guest.read_kernel(inputs.kernel)
    filesystem = config.filesystems[one.filesystem]
    made = Guest(kernel, inputs.core)
    layout = disk.layout(config.disks[one.disk], filesystem.disk_mib)
    made.disks(layout)
    made.image(inputs.image)
    _check_format(kernel, guest.read_image(inputs.image))
    made.mount(filesystem.type, filesystem.mount)
    if inputs.userland:
        made.userland(inputs.userland)
    made.ops(inputs.ops)
    for name, content in _manifests(config, inputs.ops).items():
        made.file(name.lstrip("/"), content.encode("ascii"))
    made.umount()
    return described(config, made, layout, one.seed)


def described(config: Config, made: Guest, layout: disk.Layout, seed: int) -> Booting:
    """A guest that has been told all, with the machine that it needs."""
    settings = config.machine.model_dump()
    # A disk's content is not the machine's memory, though it lies there.
    settings["memory_mib"] += layout.memory_mib
    return Booting(
        made.kernel, made.pack(), domain.command_line(settings, made.arguments), settings, domain.seed_uuid(seed)
    )


def _manifests(config: Config, stream: Path) -> dict[str, str]:
    """What the stream's verify operations compare the tree with: the file's name in the guest -> its text.

    Kept in the cache by the stream's digest: working out the tree of a large stream takes minutes, and a study has
    many runs of one. Raises UserError where the stream does not tell what must be there.
    """
    kept = Path(config.cache) / "manifests" / f"{manifest.FORMAT}-{digest.of_file(stream)}.json"
    try:
        return json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        pass  # not there, or damaged: it is made again
    try:
        made = {name: content.decode("ascii") for name, content in manifest.asked_for(stream)}
    except tree.Untold:
        raise
    except UserError:
        return {}  # a damaged stream, or one that must fail: the core says where
    whole.write_json(kept, made)
    return made


def _check_format(kernel: guest.Kernel, image: dict[str, Any]) -> None:
    """What planning could not check, since a kernel's version and configuration show only now."""
    release = kernel.description["release"]
    formats.check_kernel(
        image["filesystem"], image.get("features", ()), release, version.parse(release), kernel.configuration
    )


def start(config: Config, booting: Booting, export: Path | None = None) -> tuple[dict[str, Any], Path]:
    """Boot a guest once. Returns its result and a new folder with its console, records and domain XML.

    The folder is the caller's to remove.
    """
    from fsexp.vm.runner import boot  # libvirt is loaded for boots only: planning starts faster without
    from fsexp.vm.session import Session

    with Session(Path(config.cache)) as session:
        initramfs = session.root / "initramfs"
        initramfs.write_bytes(booting.initramfs)
        console, records = session.root / "console.log", session.root / "records.jsonl"
        xml = domain.render(
            name="fsexp",
            uuid=booting.uuid,
            machine=booting.machine,
            kernel=booting.kernel.image.resolve(),
            initramfs=initramfs,
            command_line=booting.command_line,
            console=console,
            records=records,
            export=export,
        )
        try:
            ended = boot(session, xml, console, records, config.limits.hang_s, config.limits.timeout_s)
        except KernelRefused:
            raise
        except MachineError:
            domain.check(booting.settings)  # the machine may be one that this QEMU does not have
            raise
        # Not before the boot: the session's folder is removed whatever kills us, and this one is not.
        files = Path(tempfile.mkdtemp(prefix=".run-", dir=_made(Path(config.cache))))
        try:
            (files / "domain.xml").write_text(xml, encoding="utf-8")
            for port in (console, records):
                shutil.copyfile(port, files / port.name)
        except BaseException:
            shutil.rmtree(files)
            raise
    stream = record.parse((files / "records.jsonl").read_bytes())
    word, reason = outcome.decide((files / "console.log").read_bytes(), stream, ended.ended)
    return {
        "identity": booting.identity,
        "outcome": word,
        "reason": reason,
        "ended": ended.ended.how,
        "release": booting.kernel.description["release"],
        "wall_s": round(ended.wall_s, 3),
        "boot_wall_s": None if ended.boot_wall_s is None else round(ended.boot_wall_s, 3),
        "qemu_argv": ended.argv,
        "records": stream.records if stream.whole else [],
    }, files


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _attempts(config: Config, booting: Booting) -> tuple[dict[str, Any], Path]:
    """Boot until the machine does its part, or the attempts are used up."""
    for left in reversed(range(config.limits.attempts)):
        try:
            result, files = start(config, booting)
        except KernelRefused:
            raise  # it would refuse again
        except MachineError:
            if left:
                continue
            raise
        if result["outcome"] != "infrastructure" or not left:
            return result, files
        shutil.rmtree(files)
    raise AssertionError("limits.attempts is at least 1")


def _provenance(config: Config, one: plan.Run, inputs: Inputs, booting: Booting) -> dict[str, Any]:
    _, parameters = plan.workload_of(config.experiments[one.experiment], one.variant)
    return {
        "inputs": {
            "kernel": booting.kernel.description["digest"],
            "image": guest.read_image(inputs.image)["digest"],
            "ops": digest.of_file(inputs.ops),
            "core": digest.of_file(inputs.core),
            **({"userland": guest.read_userland(inputs.userland)["digest"]} if inputs.userland else {}),
            "initramfs": digest.of_bytes(booting.initramfs),
            "machine": domain.fingerprint(booting.settings),
        },
        "parameters": parameters.model_dump(),
        "machine": booting.machine,
        "command_line": booting.command_line,
        "uuid": booting.uuid,
    }


def _without_boot(word: str, reason: str, release: str | None = None) -> dict[str, Any]:
    nothing = dict.fromkeys(("identity", "ended", "wall_s", "boot_wall_s", "machine", "command_line", "uuid"))
    return {
        **nothing, "outcome": word, "reason": reason, "release": release,
        "inputs": {}, "parameters": {}, "qemu_argv": [], "records": [],
    }  # fmt: skip


def _stored(store: Path) -> dict[str, Any] | None:
    """The run that the cache keeps there, or None. Raises UserError where it is damaged."""
    if not store.exists():
        return None
    try:
        result = json.loads((store / "result.json").read_text(encoding="utf-8"))
        good = result["outcome"] in outcome.MADE and isinstance(result["records"], list)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        good = False
    absent = [name for name in FILES if not (store / name).exists()]
    if not good or absent:
        raise UserError(f"the run kept in {store} is damaged; remove that folder, and the run is booted again")
    return result


def _compare(stored: dict[str, Any], fresh: dict[str, Any], store: Path) -> None:
    if stored["outcome"] == fresh["outcome"] and stored["records"] == fresh["records"]:
        return
    raise MachineError(
        f"the same inputs gave other records than the run kept in {store} ({stored['outcome']} then, "
        f"{fresh['outcome']} now): the virtual clock is not deterministic here; `fsexp selfcheck` shows where"
    )


def _keep(result: dict[str, Any], files: Path, store: Path) -> None:
    """Put a finished run into the cache, whole or not at all; the first of two equal ones stays."""
    if (store / "result.json").exists():
        return
    partial = Path(tempfile.mkdtemp(prefix=".keep-", dir=_made(store.parent)))
    _fill(partial, files)
    whole.write_json(partial / "result.json", result)
    try:
        partial.rename(store)
    except OSError:
        shutil.rmtree(partial)


def _deliver(result: dict[str, Any], files: Path | None, labels: dict[str, Any], output: Path) -> dict[str, Any]:
    """Fill the run's own folder; run.json comes last, so that where it is, all is."""
    _made(output)
    (output / "run.json").unlink(missing_ok=True)
    _fill(output, files)
    # Not out of the result: one that was kept by an older version has none.
    warnings = None if files is None else outcome.warnings((output / "console.log").read_bytes())
    description = labels | result | {"warnings": warnings}
    whole.write_json(output / "run.json", description)
    return description


def _fill(folder: Path, files: Path | None) -> None:
    for name in FILES:
        target = folder / name
        target.unlink(missing_ok=True)
        if files is None:
            target.touch()  # a run that was not booted has nothing to show, and says so by an empty file
        else:
            shutil.copyfile(files / name, target)
