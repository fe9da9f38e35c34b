# Kernels, and the userlands of the maker VM and of runs: what comes from outside, kept in the cache.


rule kernel:
    output:
        description=f"{RESULTS}/kernels/{{kernel}}/kernel.json",
    log:
        f"{RESULTS}/logs/kernel-{{kernel}}.log",
    conda:
        "environment.yaml"
    # A build takes what it can get; what is fetched only, one.
    threads: lambda w: workflow.cores if STUDY.kernels[KERNELS[w.kernel]].built else 1
    resources:
        mem_mb=1000,
    params:
        name=lambda w: KERNELS[w.kernel],
        source=lambda w: plan.kernel_fingerprint(STUDY, KERNELS[w.kernel]),
        local=lambda w: local.fingerprint(STUDY.kernels[KERNELS[w.kernel]].source(), STUDY_FOLDERS),
        retry=lambda w: retry(f"{RESULTS}/kernels/{w.kernel}/kernel.json"),
    shell:
        "fsexp kernel {params.name:q} --jobs {threads} --or-unavailable"
        " --output {output.description:q} 2>&1 | tee {log:q}"


rule maker_kernel:
    output:
        description=f"{RESULTS}/maker/kernel.json",
    log:
        f"{RESULTS}/logs/maker-kernel.log",
    conda:
        "environment.yaml"
    resources:
        mem_mb=1000,
    params:
        source=digest.of_value([STUDY.maker.kernel.source(), STUDY.mirror]),
        retry=lambda w: retry(f"{RESULTS}/maker/kernel.json"),
    shell:
        "fsexp kernel --maker --or-unavailable --output {output.description:q} 2>&1 | tee {log:q}"


rule userland:
    output:
        description=f"{RESULTS}/userland/{{userland}}/userland.json",
    log:
        f"{RESULTS}/logs/userland-{{userland}}.log",
    conda:
        "environment.yaml"
    resources:
        mem_mb=1000,
    params:
        source=lambda w: digest.of_value(
            [STUDY.maker.userland.suite, USERLANDS[w.userland], STUDY.mirror]
        ),
    shell:
        "fsexp userland {wildcards.userland:q} --output {output.description:q} 2>&1 | tee {log:q}"
