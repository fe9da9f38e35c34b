"""The `fsexp` command: one subcommand for each rule, and what else is done by hand."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from fsexp import __version__, whole
from fsexp.errors import BuildFailed, MachineError, UserError

if TYPE_CHECKING:
    from fsexp import plan as plans
    from fsexp import run as runs
    from fsexp.config import Config

INTERRUPTED = 130  # as a shell says it: 128 and SIGINT
CORE = Path(__file__).resolve().parents[1] / "vmimages" / "core" / "build" / "core"


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand. Returns the exit status: 0, 1 for the user's error, 2 for the machine's, 130 interrupted."""
    _on_signals()
    options = _parser().parse_args(arguments)
    try:
        return options.command(options) or 0
    except UserError as error:
        print(f"fsexp: {error}", file=sys.stderr)
        return 1
    except MachineError as error:
        print(f"fsexp: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # The disk is full, a folder is not writable: the machine's, and a traceback would not help to mend it.
        place = f"{error.filename}: " if error.filename else ""
        print(f"fsexp: {place}{error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("fsexp: interrupted; nothing is left running", file=sys.stderr)
        return INTERRUPTED


_interrupts = 0


def _on_signals() -> None:
    global _interrupts
    _interrupts = 0
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # in the background of a script it is ignored
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """As Ctrl-C, so that whatever is under way ends its guest on the way out, which another Ctrl-C must not cut short.

    Only the third ends the process at once; a session's guard then ends the guest.
    """
    global _interrupts
    _interrupts += 1
    if _interrupts == 1:
        raise KeyboardInterrupt
    if _interrupts == 2:
        os.write(2, b"fsexp: ending what is running; once more, and it is left as it is\n")
        return
    os._exit(INTERRUPTED)


class _Parser(argparse.ArgumentParser):
    """A wrong command line is the user's error: argparse's own status for it is the machine's here."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"fsexp: {message}; `{self.prog} --help` says more\n")


def _path(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("a path must not be empty")
    return Path(text)


def _new_file(text: str) -> Path:
    if _path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder; name a file")
    return Path(text)


def _old_file(text: str) -> Path:
    if not _path(text).is_file():
        raise argparse.ArgumentTypeError(f"{text} is a folder" if Path(text).is_dir() else f"there is no file {text}")
    return Path(text)


def _old_folder(text: str) -> Path:
    if not _path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return Path(text)


def _called(name: str) -> Callable[[str], Path]:
    """A file that is written with others beside it, which have names of their own too."""

    def path(text: str) -> Path:
        if _new_file(text).name != name:
            raise argparse.ArgumentTypeError(f"the file must be called {name}, for what reads it looks for that name")
        return Path(text)

    return path


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="fsexp", description=__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"fsexp {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int | None], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(command=command)
        sub.add_argument(
            "--config", type=_path, action="append", metavar="FILE",
            help="configuration; given again, later files override (default: $FSEXP_CONFIG, else config.yaml)",
        )  # fmt: skip
        return sub

    sub = add("plan", _plan, "List the runs of the study, or write its plan.")
    sub.add_argument("--output", type=_new_file, metavar="FILE", help="write plan.json here, config.json beside it")
    sub.add_argument("--schema", action="store_true", help="print the configuration's JSON Schema instead")

    unavailable = "write what can't be had as an outcome and exit with 0, as the rules do (not with strict: true)"

    sub = add("kernel", _kernel, "Fetch or build a kernel of the study.")
    which = sub.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?", help="its name under kernels:")
    which.add_argument("--maker", action="store_true", help="the maker VM's")
    _output(sub, "kernel.json")
    sub.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that build it (default: every core)")
    sub.add_argument("--or-unavailable", action="store_true", help=unavailable)

    sub = add("userland", _userland, "Fetch packages: those that mkfs comes from, or the programs of a workload.")
    sub.add_argument("name", nargs="?", help="its packages, joined by + (default: each that the study needs)")
    _output(sub, "userland.json")

    sub = add("image", _image, "Make a filesystem's image in the maker VM.")
    sub.add_argument("key", help="the image's name, as `fsexp plan` prints it")
    _named(sub, "kernel", "userland", "core")
    _output(sub, "image.json")
    sub.add_argument("--or-unavailable", action="store_true", help=unavailable)

    sub = add("ops", _ops, "Write an experiment's stream of operations, or print one.")
    sub.add_argument("key", nargs="?", help="the stream's name, as `fsexp plan` prints it")
    sub.add_argument("--output", type=_new_file, metavar="FILE")
    sub.add_argument("--show", type=_old_file, metavar="FILE", help="print a stream, an operation a line")

    sub = add("run", _run, "Boot one cell with one seed, or take the run from the cache.")
    sub.add_argument(
        "--run", required=True, metavar="FOLDER", help="the run's folder, with or without that of the results"
    )
    _named(sub, "kernel", "image", "ops", "core", "userland")
    sub.add_argument("--again", action="store_true", help="boot even where the cache has the run, and compare")
    _output(sub, "run.json")

    sub = add("tables", _tables, "Collect the runs into tables.")
    _named(sub, "plan")
    sub.add_argument("--output", type=_path, metavar="FOLDER")

    sub = add("report", _report, "Render the report.")
    _named(sub, "plan", "tables")
    sub.add_argument("--output", type=_path, metavar="FOLDER")

    sub = add("calibrate", _calibrate, "Measure the models of disks in a guest, against what they should be.")
    sub.add_argument("--disk", action="append", metavar="DISK", help="a disk of the study (default: all)")
    sub.add_argument("--kernel", action="append", metavar="KERNEL", help="a kernel of the study (default: all)")
    sub.add_argument("--core", type=_old_file, metavar="FILE", help="the core (default: vmimages/core/build/core)")
    sub.add_argument(
        "--output", type=_new_file, metavar="FILE", help="write the figures of one disk on one kernel here"
    )

    sub = add("selfcheck", _selfcheck, "Prove that two runs agree in every digit on this machine.")
    sub.add_argument("--kernel", action="append", metavar="NAME", help="only this kernel (default: all)")

    sub = add("native", _native, "Replay a workload in a folder of the host, by the core as an ordinary program.")
    sub.add_argument("workload", help="its name, or a file with a stream of operations")
    sub.add_argument("--directory", type=_old_folder, required=True, metavar="FOLDER", help="an empty folder")
    sub.add_argument(
        "-p", "--parameter", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the workload"
    )

    add("summary", _summary, "Say how the study's runs ended.")
    add("doctor", _doctor, "Say what this machine can do, and what is missing.")
    return parser


def _output(sub: argparse.ArgumentParser, name: str) -> None:
    sub.add_argument("--output", type=_called(name), metavar="FILE", help=f"write {name} here, the rest beside it")


def _named(sub: argparse.ArgumentParser, *names: str) -> None:
    for name in names:
        kind, what = (_old_folder, "FOLDER") if name == "tables" else (_old_file, "FILE")
        sub.add_argument(f"--{name}", type=kind, metavar=what, help="default: where its rule puts it")


def _config(options: argparse.Namespace) -> Config:
    from fsexp import config

    paths = options.config or [Path(os.environ.get("FSEXP_CONFIG", "config.yaml"))]
    return config.load(paths)


def _plan(options: argparse.Namespace) -> None:
    from fsexp import config as configuration
    from fsexp import plan

    if options.schema:
        print(json.dumps(configuration.schema(), indent=1))
        return
    config = _config(options)
    made = plan.images(config)
    if options.output:
        plan.write(config, options.output)
        whole.write_json(options.output.with_name("config.json"), config.model_dump())
        return
    for name, experiment in config.experiments.items():
        cells = itertools.product(experiment.filesystems, experiment.kernels, experiment.disks)
        images = ", ".join(dict.fromkeys(made[cell].key for cell in cells))
        streams = ", ".join(dict.fromkeys(plan.ops_key(experiment, one) for one in experiment.variants or [""]))
        print(f"{name}: stream {streams}, images {images}")
    for one in plan.runs(config):
        print(one.folder)


def _kernel(options: argparse.Namespace) -> None:
    from fsexp import plan
    from fsexp.kernel import kinds

    config = _config(options)
    if options.maker:
        kernel, place = config.maker.kernel, Path("maker")
    else:
        _known(config, options.name)
        kernel, place = config.kernels[options.name], Path("kernels", plan.slug(options.name))
    output = options.output or Path(config.results) / place / "kernel.json"
    whole.check_ours(output.parent)  # before much is fetched for it
    spec = {**kernel.source(), "mirror": config.mirror, "snapshot_mirror": config.snapshot_mirror}
    study = [Path(config.results), Path(config.cache)]
    try:
        kinds.make(spec, Path(config.cache), Path("kernels.lock"), output.parent, options.jobs, study)
    except whole.NotOurs:
        raise
    except (UserError, MachineError) as error:
        description = _unavailable(config, options, f"kernel {options.name or place}", error)
        with whole.folder(output.parent) as fresh:
            whole.write_json(fresh / output.name, description)


def _known(config: Config, name: str) -> None:
    if name not in config.kernels:
        raise UserError(f"no kernel '{name}' in the configuration; known are {', '.join(config.kernels)}")


def _userland(options: argparse.Namespace) -> None:
    from fsexp import plan, userland

    config = _config(options)
    known = plan.userlands(config)
    if options.name and options.name not in known:
        raise UserError(f"the configuration needs no userland '{options.name}'; it needs {', '.join(known)}")
    if options.output and not options.name:
        raise UserError("--output needs the name of one userland")
    for name in [options.name] if options.name else known:
        output = options.output or Path(config.results, "userland", name, "userland.json")
        whole.check_ours(output.parent)
        spec = {
            "suite": config.maker.userland.suite,
            "packages": list(known[name]),
            "mirror": config.mirror,
        }
        userland.fetch(spec, Path(config.cache), Path("userland.lock"), output.parent)


def _unavailable(config: Config, options: argparse.Namespace, what: str, error: Exception) -> dict[str, object]:
    """What can't be had, as its description: an outcome of the cells that need it, while the rest of the study goes on.

    Raises the error where the study is `strict`, or a person called, who asked for this one thing.
    """
    if config.strict or not options.or_unavailable:
        raise error
    print(f"fsexp: {what} can't be had: {error}", file=sys.stderr)
    own = {"outcome": error.outcome} if isinstance(error, BuildFailed) else {}
    return {"format": 1, "unavailable": str(error), **own}


def _image(options: argparse.Namespace) -> None:
    from fsexp import plan
    from fsexp.image import filesystem

    config = _config(options)
    results = Path(config.results)
    userland = plan.userland_key(plan.image(config, options.key).packages)
    output = options.output or results / "images" / options.key / "image.json"
    try:
        filesystem.make(
            config,
            options.key,
            options.kernel or results / "maker" / "kernel.json",
            options.userland or results / "userland" / userland / "userland.json",
            options.core or CORE,
            output.parent,
        )
    except filesystem.Refused as error:
        description = _unavailable(config, options, f"image {options.key}", error)
        whole.write(output.with_name("image.fsimg"), b"")  # the rule's other output
        whole.write_json(output, description | {"outcome": "unsupported"})


def _ops(options: argparse.Namespace) -> None:
    from fsexp import ops, workload

    if options.show:
        for name, arguments in ops.read(options.show):
            print(name, *arguments)
        return
    config = _config(options)
    if options.key is None:
        raise UserError("name a stream (`fsexp plan` lists them), or one to --show")
    output = options.output or Path(config.results, "ops", f"{options.key}.ops")
    workload.write(*_workload(config, options.key), output)


def _workload(config: Config, key: str) -> tuple[str, Any]:
    """The workload of a stream, and its parameters."""
    from fsexp import plan

    streams = plan.streams(config)
    for (experiment, variant), known in streams.items():
        if known == key:
            return plan.workload_of(config.experiments[experiment], variant)
    known = ", ".join(dict.fromkeys(streams.values()))
    raise UserError(f"no experiment of the configuration has a stream '{key}'; known are {known}")


def _inputs(config: Config, one: plans.Run, options: argparse.Namespace | None = None) -> runs.Inputs:
    """The files of a run: those named, else where their rules put them."""
    from fsexp import plan, run

    results = Path(config.results)
    places = {
        "kernel": lambda: results / "kernels" / plan.slug(one.kernel) / "kernel.json",
        # Asked for only where none is named: a kernel that was fetched meanwhile may turn out not to mount it, which is
        # the run's outcome then.
        "image": lambda: (
            results / "images" / plan.image_key(config, one.filesystem, one.kernel, one.disk) / "image.json"
        ),
        "ops": lambda: results / "ops" / f"{plan.ops_key(config.experiments[one.experiment], one.variant)}.ops",
        "core": lambda: CORE,
    }
    packages = plan.guest_packages(config.experiments[one.experiment], one.variant)
    if packages:
        places["userland"] = lambda: results / "userland" / plan.userland_key(packages) / "userland.json"
    return run.Inputs(**{name: getattr(options, name, None) or place() for name, place in places.items()})


def _run(options: argparse.Namespace) -> None:
    from fsexp import plan, run

    config = _config(options)
    one = plan.run(config, options.run)
    output = options.output or Path(config.results, one.folder, "run.json")
    result = run.make(config, one, _inputs(config, one, options), output.parent, options.again)
    reason = f": {result['reason']}" if result["reason"] else ""
    print(f"{one.experiment}: {one.label}, seed {one.seed}: {result['outcome']}{reason}")


def _tables(options: argparse.Namespace) -> None:
    from fsexp import table

    config = _config(options)
    results = Path(config.results)
    table.build(options.plan or results / "plan.json", results, options.output or results / "tables")


def _report(options: argparse.Namespace) -> None:
    from fsexp import report

    config = _config(options)
    results = Path(config.results)
    report.render(
        options.plan or results / "plan.json",
        options.tables or results / "tables",
        results,
        options.output or results / "report",
    )


def _calibrate(options: argparse.Namespace) -> None:
    from fsexp import calibration, plan

    config = _config(options)
    for label in options.disk or ():
        if label not in config.disks:
            raise UserError(f"no disk '{label}' in the configuration; known are {', '.join(config.disks)}")
    for name in options.kernel or ():
        _known(config, name)
    given = [word for file in options.config or () for word in ("--config", str(file))]
    figures: list[calibration.Figure | calibration.Unmeasured] = []
    kernels, disks = options.kernel or list(config.kernels), options.disk or list(config.disks)
    if options.output and len(kernels) * len(disks) > 1:
        raise UserError("--output takes the figures of one disk on one kernel: name them by --disk and --kernel")
    for name in kernels:
        path = Path(config.results, "kernels", plan.slug(name), "kernel.json")
        if not path.exists():
            _make_absent(path, ["kernel", name, "--or-unavailable", *given])
        for label in disks:
            found = calibration.measure(config, label, name, path, options.core or CORE)
            calibration.write(found, options.output or Path(config.results, calibration.place(name, label)))
            figures += found
    for line in calibration.lines(figures):
        print(line)


def _selfcheck(options: argparse.Namespace) -> None:
    from fsexp import selfcheck

    config = _config(options)
    for name in options.kernel or ():
        _known(config, name)
    study = selfcheck.study(config)
    cells = selfcheck.cells(study, options.kernel)
    _make_inputs(study, cells)
    kept = Path(config.results, "selfcheck")
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / "selfcheck.txt").open("w", encoding="utf-8") as log:

        def say(line: str) -> None:
            print(line, flush=True)
            print(line, file=log, flush=True)

        selfcheck.check(study, cells, lambda one: _inputs(study, one), say, kept)


def _make_inputs(config: Config, runs: list[plans.Run]) -> None:
    """Make what these runs need and is not there yet, by the commands that the rules call."""
    from fsexp import plan

    results = Path(config.results)
    path = results / "selfcheck" / "plan.json"
    plan.write(config, path)
    whole.write_json(path.with_name("config.json"), config.model_dump())
    given = ["--config", str(path.with_name("config.json"))]
    made = plan.images(config)
    programs = plan.guest_userlands(config)
    needed = {("kernel", "--maker"): results / "maker" / "kernel.json"}
    for one in runs:
        image = made[one.filesystem, one.kernel, one.disk]
        userland = plan.userland_key(image.packages)
        needed["userland", userland] = results / "userland" / userland / "userland.json"
        if (one.experiment, one.variant) in programs:
            userland = programs[one.experiment, one.variant]
            needed["userland", userland] = results / "userland" / userland / "userland.json"
        needed["kernel", one.kernel] = results / "kernels" / plan.slug(one.kernel) / "kernel.json"
        needed["image", image.key] = results / "images" / image.key / "image.json"
        key = plan.ops_key(config.experiments[one.experiment], one.variant)
        needed["ops", key] = results / "ops" / f"{key}.ops"
    for (command, *names), place in needed.items():
        _make_absent(place, [command, *names, *given])


def _make_absent(place: Path, words: list[str]) -> None:
    """Make a description that is not there, or says that what it is of could not be had, by its command."""
    if not place.exists() or "unavailable" in place.read_bytes()[:1000].decode(errors="replace"):
        options = _parser().parse_args(words)
        options.command(options)


def _native(options: argparse.Namespace) -> None:
    from fsexp import native

    got = native.run(CORE, options.workload, native.given(options.parameter), options.directory)
    for line in native.table(got):
        print(line)
    print("by this machine's clock: no figure of a study")


def _summary(options: argparse.Namespace) -> None:
    from fsexp import summary

    config = _config(options)
    for line in summary.lines(Path(config.results)):
        print(line)


def _doctor(_: argparse.Namespace) -> int:
    from fsexp import doctor

    return doctor.report(print)


if __name__ == "__main__":
    sys.exit(main())
