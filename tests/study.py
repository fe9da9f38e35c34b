"""A folder with a plan and results, made by hand for tests of tables and reports."""

import itertools
import json
from pathlib import Path

from fsexp import plan, report, table

KERNELS = ("debian-5.10", "debian-6.1")
FILESYSTEMS = ("ext4", "btrfs")
PHASES = ("create", "delete")
PUBLISHED = {
    "source": "Poor creat/delete files performance, linux-btrfs",
    "date": "2010-08-18",
    "scale": {"nfiles": 50000},
    "note": "One run, a machine of that time.",
    "figures": [
        {"phase": "create", "filesystem": "btrfs", "elapsed_s": 2.462625},
        {"phase": "create", "filesystem": "ext4", "elapsed_s": 1.449550},
        {"phase": "delete", "filesystem": "btrfs", "elapsed_s": 3.312796},
        {"phase": "delete", "filesystem": "ext4", "elapsed_s": 0.997946},
    ],
}
MACHINE = {
    "qemu": "QEMU emulator version 7.2.22",
    "firmware": {"bios-256k.bin": "f" * 64},
    "memory_mib": 1024,
    "cpu": "Nehalem",
    "machine": "pc-i440fx-7.2",
    "shift": 0,
}


class Results:
    """A study in a folder: `plan.json`, `results/`, and, once rendered, `tables/` and `report/`."""

    def __init__(
        self,
        folder: Path,
        kernels=KERNELS,
        filesystems=FILESYSTEMS,
        seeds=(1, 2, 3),
        phases=PHASES,
        published=(PUBLISHED,),
        name="create-unlink",
        title="Creating and deleting files",
        question="How long does it take to create and delete files in one directory?",
        disks=None,
        variants=None,
    ):
        """disks: labels. variants: label -> parameters beside nfiles. None: a plan from before there were any."""
        self.folder = folder
        self.plan_path = folder / "plan.json"
        self.results = folder / "results"
        self.tables = folder / "results" / "tables"
        self.output = folder / "results" / "report"
        self.results.mkdir(parents=True)
        self.name = name
        self.kernels, self.filesystems, self.seeds = kernels, filesystems, seeds
        factors = {"kernel": list(kernels), "filesystem": list(filesystems)}
        if disks or variants:
            factors |= {"disk": list(disks or ["ram"]), "variant": list(variants or [""])}
        self.factors = factors
        parameters = {name: {"nfiles": 5000} | own for name, own in (variants or {"": {}}).items()}
        cells = list(itertools.product(*map(enumerate, factors.values())))
        self.plan = {
            "format": 1,
            "study": {"title": title, "clock": "virtual"},
            "experiments": {
                name: {
                    "title": title,
                    "question": question,
                    "workload": {"name": "create-unlink", "parameters": {"nfiles": 5000}},
                    "factors": factors,
                    "variants": {name: {"parameters": own, "phases": list(phases)} for name, own in parameters.items()},
                    "seeds": list(seeds),
                    "phases": list(phases),
                    "published": list(published),
                }
            },
            "runs": [
                {
                    "experiment": name,
                    "cell": (cell := ",".join(f"{name[0]}{at}" for name, (at, _) in zip(factors, levels, strict=True))),
                    "levels": dict(zip(factors, (level for _, level in levels), strict=True)),
                    "seed": seed,
                    "folder": f"runs/x/{cell}/{seed}",
                }
                for levels in cells
                for seed in seeds
            ],
        }
        self._planned = {(*one["levels"].values(), one["seed"]): one for one in self.plan["runs"]}
        self.save_plan()

    def save_plan(self):
        self.plan_path.write_text(json.dumps(self.plan))

    def planned(self, kernel, filesystem, seed, *others):
        """A run's entry in the plan; `others` are its disk and its variant where the study has them."""
        return self._planned[kernel, filesystem, *others, seed]

    def path(self, *run):
        return self.results / self.planned(*run)["folder"]

    def document(self, kernel, filesystem, seed, outcome, reason, records, *others):
        planned = self.planned(kernel, filesystem, seed, *others)
        experiment = self.plan["experiments"][self.name]
        variant = experiment["variants"][planned["levels"].get("variant", "")]
        return {
            "format": 1,
            "identity": "1" * 64,
            "experiment": planned["experiment"],
            "cell": planned["cell"],
            "levels": planned["levels"],
            "clock": "virtual",
            "seed": seed,
            "outcome": outcome,
            "reason": reason,
            "inputs": {
                "kernel": "a" * 64,
                "image": "b" * 64,
                "ops": "c" * 64,
                "core": "d" * 64,
                "initramfs": "e" * 64,
                "machine": "9" * 64,
            },
            "parameters": variant["parameters"],
            "release": "6.1.0-49-amd64",
            "wall_s": 9.3,
            "boot_wall_s": 4.1,
            "warnings": [],
            "machine": MACHINE,
            "command_line": "console=ttyS0 nokaslr",
            "qemu_argv": ["qemu-system-x86_64", "-name", "a guest"],
            "repeat": f"./run fsexp run '{planned['folder']}'",
            "records": records,
        }

    def write(self, kernel, filesystem, seed, document, console=b"Linux\r\nfsexp: done\r\n", others=()):
        folder = self.path(kernel, filesystem, seed, *others)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.json").write_text(json.dumps(document))
        (folder / "console.log").write_bytes(console)
        (folder / "records.jsonl").write_text("")
        (folder / "domain.xml").write_text("<domain/>")

    def ok(self, kernel, filesystem, seed, elapsed_ns, *others, more=()):
        """A run that is ok; `elapsed_ns`: phase -> ns. more: records besides."""
        records = [space("", 100)]
        for phase, value in elapsed_ns.items():
            records += [timed(phase, value), space(phase, 356)]
        document = self.document(kernel, filesystem, seed, "ok", None, whole([*records, *more]), *others)
        self.write(kernel, filesystem, seed, document, others=others)

    def failed(self, kernel, filesystem, seed, outcome, reason, console=b"Linux\n"):
        document = self.document(kernel, filesystem, seed, outcome, reason, [])
        self.write(kernel, filesystem, seed, document, console)

    def release(self, kernel, release):
        """Let the kernel's runs, which are there, have reported that release; None where they reported none."""
        for key in self._planned:
            if key[0] == kernel:
                path = self.path(*key) / "run.json"
                path.write_text(json.dumps(json.loads(path.read_text()) | {"release": release}))

    def kernel(self, kernel, document, config=None):
        """The kernel's folder; `config` is the text of its configuration."""
        folder = self.results / "kernels" / plan.slug(kernel)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.json").write_text(json.dumps({"format": 1} | document))
        if config is not None:
            (folder / "config").write_text(config)

    def build(self):
        table.build(self.plan_path, self.results, self.tables)

    def render(self):
        """Build the tables, render the report, give its text."""
        self.build()
        report.render(self.plan_path, self.tables, self.results, self.output)
        return (self.output / "index.html").read_text(encoding="utf-8")


def whole(records):
    """The records between the first and the last of a good run, numbered."""
    records = [{"type": "hello", "format": 1}, *records, {"type": "end", "status": "ok", "records": len(records) + 2}]
    return [{"seq": number, **record} for number, record in enumerate(records)]


def timed(phase, elapsed_ns, operations=5000):
    return {
        "type": "phase",
        "name": phase,
        "elapsed_ns": elapsed_ns,
        "operations": operations,
        "bytes": 0,
        "errors": 0,
    }


def space(phase, used_blocks):
    return {
        "type": "space",
        "phase": phase,
        "block_bytes": 4096,
        "blocks": 65536,
        "free_blocks": 65536 - used_blocks,
        "inodes": 16384,
        "free_inodes": 16384 - 11,
    }


def full(folder, **options):
    """Every run ok. Medians in s: 5.10 ext4 0.100, btrfs 0.150; 6.1 ext4 0.127, btrfs 0.245;
    deleting takes twice as long. Seeds are 1 ms apart. Each further disk and variant takes 1 s longer."""
    made = Results(folder, **options)
    medians = ((100, 150), (127, 245))
    for k, kernel in enumerate(made.kernels):
        for f, filesystem in enumerate(made.filesystems):
            for s, seed in enumerate(made.seeds):
                create_ns = (medians[k % 2][f % 2] + s - 1) * 1_000_000
                for number, others in enumerate(itertools.product(*list(made.factors.values())[2:])):
                    own_ns = create_ns + 1_000_000_000 * number
                    made.ok(kernel, filesystem, seed, {"create": own_ns, "delete": 2 * own_ns}, *others)
    return made
