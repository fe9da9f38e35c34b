# Operations, and the runs that replay them.


rule ops:
    output:
        stream=f"{RESULTS}/ops/{{ops}}.ops",
    log:
        f"{RESULTS}/logs/ops-{{ops}}.log",
    conda:
        "environment.yaml"
    shell:
        "fsexp ops {wildcards.ops:q} --output {output.stream:q} 2>&1 | tee {log:q}"


rule run:
    input:
        # One function for all: Snakemake's own work for a job grows with their number, and a study has many runs.
        unpack(inputs_of),
    output:
        result=f"{RESULTS}/runs/{{run}}/run.json",
    # The guest's console: a log stays when a job fails. records.jsonl and domain.xml lie beside it; they are not
    # declared, since each declared file of 10,000 runs adds 1.5 s to planning.
    log:
        f"{RESULTS}/runs/{{run}}/console.log",
    conda:
        "environment.yaml"
    resources:
        mem_mb=memory_of,
    params:
        depends=fingerprint_of,
        userland=userland_of,
    shell:
        "fsexp run --run runs/{wildcards.run:q}"
        " --kernel {input.kernel:q} --image {input.image:q} --ops {input.ops:q}"
        f" --core {shlex.quote(CORE)}"
        " {params.userland}"
        " --output {output.result:q}"


rule calibration:
    input:
        lambda w: f"{RESULTS}/kernels/{plan.slug(calibrated(w)[0])}/kernel.json",
    output:
        figures=f"{RESULTS}/calibration/{{calibrated}}.json",
    log:
        f"{RESULTS}/logs/calibration-{{calibrated}}.log",
    conda:
        "environment.yaml"
    resources:
        mem_mb=STUDY.machine.memory_mib + 1000,
    params:
        kernel=lambda w: calibrated(w)[0],
        disk=lambda w: calibrated(w)[1],
        depends=lambda w: [*MACHINE, STUDY.disks[calibrated(w)[1]].model_dump()],
    shell:
        "fsexp calibrate --kernel {params.kernel:q} --disk {params.disk:q}"
        f" --core {shlex.quote(CORE)}"
        " --output {output.figures:q} 2>&1 | tee {log:q}"
