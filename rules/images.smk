# What a guest's disk holds before a run.


rule image:
    input:
        kernel=rules.maker_kernel.output.description,
        userland=lambda w: f"{RESULTS}/userland/{MAKERS[w.image]}/userland.json",
        core=CORE,
    output:
        description=f"{RESULTS}/images/{{image}}/image.json",
        content=f"{RESULTS}/images/{{image}}/image.fsimg",
    log:
        f"{RESULTS}/logs/image-{{image}}.log",
    conda:
        "environment.yaml"
    resources:
        mem_mb=STUDY.machine.memory_mib + 700,
    params:
        # What mkfs refuses it refuses again; but with `strict` it has to be said again.
        retry=lambda w: (retry(f"{RESULTS}/images/{w.image}/image.json") if STUDY.strict else ""),
    shell:
        "fsexp image {wildcards.image:q} --kernel {input.kernel:q} --userland {input.userland:q}"
        " --core {input.core:q} --or-unavailable --output {output.description:q} 2>&1 | tee {log:q}"
