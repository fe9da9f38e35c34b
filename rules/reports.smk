# What a person reads, and the proof that its digits can be had again.


rule report:
    input:
        plan=rules.plan.output.plan,
        tables=rules.tables.output,
        # Their configurations lie beside them.
        kernels=expand(
            f"{RESULTS}/kernels/{{kernel}}/kernel.json",
            kernel=[
                plan.slug(name) for name in dict.fromkeys(one.kernel for one in RUNS.values())
            ],
        ),
        calibrations=list(CALIBRATIONS),
    output:
        report=f"{RESULTS}/report/index.html",
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "environment.yaml"
    params:
        tables=lambda w, input: os.path.dirname(input.tables[0]),
        folder=lambda w, output: os.path.dirname(output.report),
    shell:
        "fsexp report --plan {input.plan:q} --tables {params.tables:q}"
        " --output {params.folder:q} 2>&1 | tee {log:q}"


rule selfcheck:
    input:
        [f"{RESULTS}/kernels/{kernel}/kernel.json" for kernel in KERNELS],
        [f"{RESULTS}/images/{image}/image.json" for image in MAKERS],
        core=CORE,
    output:
        f"{RESULTS}/selfcheck/selfcheck.txt",
    log:
        f"{RESULTS}/logs/selfcheck.log",
    conda:
        "environment.yaml"
    # It loads every core itself: nothing else of the study may run beside it.
    threads: workflow.cores or 1
    shell:
        "fsexp selfcheck 2>&1 | tee {log:q}"
