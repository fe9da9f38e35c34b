"""A study's folder in which tests boot: its kernels, images and operations are made once a session."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import yaml

from fsexp import apt, config, plan

CHECKOUT = Path(__file__).resolve().parents[2]
CORE = CHECKOUT / "vmimages" / "core" / "build" / "core"
COMMANDS = Path(sys.executable).parent
FSEXP = COMMANDS / "fsexp"

OLD, NEW = "debian-6.1", "debian-backports"
KERNELS = {OLD: {"debian": {"suite": "bookworm"}}, NEW: {"debian": {"suite": "trixie-backports"}}}
FILESYSTEMS = {name: {"type": name, "disk_mib": 256} for name in ("ext4", "btrfs")}
NFILES = 50


def experiment(workload, kernels=(OLD,), filesystems=("ext4",), **others):
    """An experiment with one seed, as the configuration has it; others: disks, variants."""
    return {
        "title": "A test",
        "question": "Does it work?",
        "workload": workload,
        "kernels": list(kernels),
        "filesystems": list(filesystems),
        "seeds": 1,
        **others,
    }


def fill_cache(cache):
    """A cache of its own, so that no run is taken from an earlier session; packages are the checkout's."""
    cache.mkdir()
    for name in ("downloads", "apt"):
        (CHECKOUT / "cache" / name).mkdir(parents=True, exist_ok=True)
        (cache / name).symlink_to(CHECKOUT / "cache" / name)
    if (CHECKOUT / "cache" / "libvirt").is_dir():
        shutil.copytree(CHECKOUT / "cache" / "libvirt", cache / "libvirt")


def copy_locks(folder):
    """The checkout's pins, so that what lies in its cache is what is asked for."""
    for name in ("kernels.lock", "userland.lock"):
        if (CHECKOUT / name).exists():
            shutil.copyfile(CHECKOUT / name, folder / name)


def nothing_to_fetch_from():
    """Whether there is neither a package in the cache nor a mirror: the one reason to skip."""
    if any((CHECKOUT / "cache" / "downloads").glob("*.deb")):
        return False
    mirror = apt.machine_sources()[0].rstrip("/")
    with tempfile.TemporaryDirectory() as folder:
        # Not to /dev/null: apt's helper wants to put a file of its own there, and fails.
        asked = subprocess.run(
            [apt.APT_HELPER, "download-file", f"{mirror}/dists/bookworm/InRelease", f"{folder}/InRelease"],
            capture_output=True,
            check=False,
        )
    return asked.returncode != 0


def processes(text):
    """The processes, other than this one, whose command line contains `text`: number -> command line."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        if str(text) in line and int(folder.name) != os.getpid():
            found[int(folder.name)] = line
    return found


def qemus(text):
    """Those of them that are QEMU."""
    return {number: line for number, line in processes(text).items() if "qemu-system" in line.split(" ", 1)[0]}


def session_folder(file):
    """The folder of a process's driver in /tmp, below which the guest's `file` lies."""
    root = Path(*Path(file).parts[:3])
    assert root.match("/tmp/fsexp-*")
    return root


def initramfs(domain_xml):
    """The initramfs that a run's description names."""
    return ElementTree.parse(domain_xml).findtext("os/initrd")


class Bench:
    """A folder with a configuration, and `fsexp` called in it."""

    def __init__(self, folder, experiments, name="config.yaml", **others):
        self.folder = folder
        self.settings = {
            "strict": True,
            "machine": {"memory_mib": 512},
            "limits": {"attempts": 1},
            "kernels": KERNELS,
            "filesystems": FILESYSTEMS,
            "experiments": experiments,
            **others,
        }
        self.path = self.file(name, self.settings)
        self.config = config.load([self.path])
        self.environment = os.environ | {"FSEXP_CONFIG": name}

    @classmethod
    def new(cls, folder, experiments, **others):
        """One in a folder that is not there yet."""
        folder.mkdir(parents=True)
        fill_cache(folder / "cache")
        copy_locks(folder)
        return cls(folder, experiments, **others)

    @property
    def results(self):
        return self.folder / "results"

    def file(self, name, content):
        """A file of the test's own in the folder: YAML of `content`."""
        path = self.folder / name
        path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
        return path

    def start(self, *arguments, **options):
        """`fsexp` in a process group of its own."""
        return subprocess.Popen(
            [FSEXP, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )

    def fsexp(self, *arguments, status=0):
        """Call `fsexp`, expect that status; returns what it wrote to either stream."""
        process = self.start(*arguments)
        out, err = process.communicate()
        assert process.returncode == status, f"fsexp {' '.join(map(str, arguments))}: {process.returncode}\n{out}{err}"
        return out + err

    def make_inputs(self):
        """Kernels, userland, images and operations of the configuration."""
        for name in self.config.kernels:
            self.fsexp("kernel", name)
        self.fsexp("kernel", "--maker")
        self.fsexp("userland")
        for key in {made.key for made in plan.images(self.config).values()}:
            self.fsexp("image", key)
        self.make_ops()

    def make_ops(self):
        for key in dict.fromkeys(plan.streams(self.config).values()):
            self.fsexp("ops", key)

    def planned(self, experiment):
        """The first run of an experiment."""
        return next(one for one in plan.runs(self.config) if one.experiment == experiment)

    def kernel(self, name=OLD):
        return self.results / "kernels" / plan.slug(name) / "kernel.json"

    def image(self, name="ext4", kernel=OLD, disk="ram"):
        return self.results / "images" / plan.image_key(self.config, name, kernel, disk) / "image.json"

    def copy_kernel(self, name, to):
        """A kernel's folder once more, without copying its bytes; returns the path of its kernel.json."""
        shutil.copytree(self.kernel(name).parent, self.folder / to, copy_function=os.link)
        return self.folder / to / "kernel.json"

    def result(self, one):
        """(run.json, its folder)."""
        folder = self.results / one.folder
        return json.loads((folder / "run.json").read_text(encoding="utf-8")), folder
