# The study: config.yaml -> plan -> kernels, images, operations -> runs -> tables -> report.
# Each rule calls one `fsexp` command; run by hand it does the same.
import atexit
import gc
import inspect
import os
import shlex
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.0")
# Planning makes millions of objects that live to its end: collecting them, then and once more when Python exits, takes
# a fifth of its time.
gc.disable()
atexit.register(gc.freeze)

sys.path.insert(0, str(workflow.basedir))
from fsexp import calibration, digest, disk, plan
from fsexp import config as configuration
from fsexp.errors import MachineError, UserError
from fsexp.kernel import local
from fsexp.vm import domain

try:
    # Before Snakemake's own reader, whose words say less.
    if os.path.exists("config.yaml"):
        configuration.read(Path("config.yaml"))
except UserError as error:
    sys.exit(f"fsexp: {error}")


configfile: "config.yaml"


include: "rules/common.smk"
include: "rules/kernels.smk"
include: "rules/images.smk"
include: "rules/runs.smk"
include: "rules/analysis.smk"
include: "rules/reports.smk"


localrules:
    all,
    report,
    tables,


rule all:
    default_target: True
    input:
        rules.report.output,
        gone,


onstart:
    gc.enable()


onsuccess:
    summary()
