# The validated study, and what the rules look up in it.
import logging

from snakemake.logging import logger as smk_logger

try:
    # Snakemake's own reader keeps the last of two equal keys: the files are read once more for those.
    for file in workflow.configfiles:
        configuration.read(Path(file))
    STUDY = configuration.resolve(config)
    # Which formats the kernels mount is checked on the way.
    IMAGES = plan.images(STUDY)
except (UserError, MachineError) as error:
    sys.exit(f"fsexp: {error}")

# The rules' commands read the configuration as Snakemake merged it. It is named by its content: a dry run with
# another configuration must not change the one under a study that is running.
os.environ["FSEXP_CONFIG"] = str(configuration.snapshot(STUDY, Path(".snakemake", "fsexp")))


envvars:
    "FSEXP_CONFIG",


RESULTS = STUDY.results
# They may lie in a kernel's source tree.
STUDY_FOLDERS = [Path(RESULTS), Path(STUDY.cache), Path(".snakemake")]
# Relative, so that a checkout that is moved repeats nothing.
CORE = os.path.relpath(Path(workflow.basedir, "vmimages", "core", "build", "core"))
# Another QEMU, another domain or another core gives other digits. The core is no input of a run: each input of 10,000
# runs adds 1 s to planning.
MACHINE = [
    domain.fingerprint(STUDY.machine.model_dump()),
    digest.of_file(CORE) if os.path.exists(CORE) else "",
]
RUNS = {one.folder: one for one in plan.runs(STUDY)}
KERNELS = {plan.slug(name): name for name in STUDY.kernels}
STREAMS = plan.streams(STUDY)
USERLANDS = plan.userlands(STUDY)
# (experiment, variant) -> the userland of its guests, where its workload runs programs.
PROGRAMS = plan.guest_userlands(STUDY)
# File -> the kernel and the disk whose figures it holds.
CALIBRATIONS = {f"{RESULTS}/{calibration.place(*pair)}": pair for pair in plan.calibrations(STUDY)}
# (filesystem, disk) -> MB of a run: the guest's memory, its disks, QEMU's translation buffer and the initramfs.
MEMORY_MB = {
    (filesystem, label): STUDY.machine.memory_mib
    + disk.layout(STUDY.disks[label], STUDY.filesystems[filesystem].disk_mib).memory_mib
    + 700
    for filesystem, label in {(one.filesystem, one.disk) for one in RUNS.values()}
}
# Image -> the userland that it is made with.
MAKERS = {made.key: plan.userland_key(made.packages) for made in IMAGES.values()}


def run_of(wildcards):
    return RUNS[f"runs/{wildcards.run}"]


def inputs_of(wildcards):
    one = run_of(wildcards)
    needed = {
        "kernel": f"{RESULTS}/kernels/{plan.slug(one.kernel)}/kernel.json",
        "image": f"{RESULTS}/images/{IMAGES[one.filesystem, one.kernel, one.disk].key}/image.json",
        "ops": f"{RESULTS}/ops/{STREAMS[one.experiment, one.variant]}.ops",
    }
    programs = PROGRAMS.get((one.experiment, one.variant))
    if programs:
        needed["userland"] = f"{RESULTS}/userland/{programs}/userland.json"
    return needed


def userland_of(wildcards, input):
    """The option that names a run's userland, where it needs one."""
    return f"--userland {shlex.quote(input.userland)}" if "userland" in input.keys() else ""


def memory_of(wildcards):
    one = run_of(wildcards)
    return MEMORY_MB[one.filesystem, one.disk]


def calibrated(wildcards):
    return CALIBRATIONS[f"{RESULTS}/calibration/{wildcards.calibrated}.json"]


def fingerprint_of(wildcards):
    """Changes when the run has to be made again, or filed under other labels."""
    one = run_of(wildcards)
    return digest.of_value([*MACHINE, plan.fingerprint(STUDY, one), one.experiment, one.levels])


# Snakemake asks for a function's parameters each time it calls it, and Python works them out anew each time unless they
# are written down: 2 s for 10,000 runs.
for function in (inputs_of, fingerprint_of, userland_of, memory_of):
    function.__signature__ = inspect.signature(function)


def retry(path):
    """Changes at every start while a kernel could not be had, so that it is asked for again."""
    file = Path(path)
    unavailable = file.exists() and '"unavailable"' in file.read_text(
        encoding="utf-8", errors="replace"
    )
    return f"unavailable at {file.stat().st_mtime_ns}" if unavailable else ""


def gone(_):
    """Results of runs that were removed since the tables were made.

    To Snakemake the tables look up to date without them: it asks for no file between those that a target names.
    """
    if not Path(RESULTS, "tables", "runs.csv").exists():
        return []
    return [path for folder in RUNS if not os.path.exists(path := f"{RESULTS}/{folder}/run.json")]


def summary():
    if Path(RESULTS, "tables", "runs.csv").exists():
        shell("fsexp summary")


class NothingToDo(logging.Handler):
    """Snakemake calls no hook when there is nothing to be done, and only says so."""

    def emit(self, record):
        if record.getMessage().startswith("Nothing to be done"):
            atexit.register(summary)


smk_logger.addHandler(NothingToDo())


wildcard_constraints:
    # Experiment, cell and seed as one: each further wildcard of 10,000 runs adds 1 s to planning.
    run="[^/]+/[^/]+/[0-9]+",
    kernel="[^/]+",
    userland="[^/]+",
    image="[^/]+",
    ops="[^/]+",
    calibrated="[^/]+",
