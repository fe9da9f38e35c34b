# From runs to tables.


rule plan:
    output:
        plan=f"{RESULTS}/plan.json",
        config=f"{RESULTS}/config.json",
    log:
        f"{RESULTS}/logs/plan.log",
    conda:
        "environment.yaml"
    params:
        study=digest.of_value(STUDY.model_dump()),
    shell:
        "fsexp plan --output {output.plan:q} 2>&1 | tee {log:q}"


rule tables:
    input:
        # Not rules.plan.output: with such a reference among them Snakemake 9 hashes all inputs once for each input,
        # 15 s for 10,000 runs.
        plan=f"{RESULTS}/plan.json",
        # Read by their places in the plan: ten thousand paths are more than a command line takes.
        runs=expand(f"{RESULTS}/{{folder}}/run.json", folder=list(RUNS)),
    output:
        expand(
            f"{RESULTS}/tables/{{table}}.{{kind}}",
            table=["runs", "phases", "operations", "commands", "fio", "space"],
            kind=["parquet", "csv"],
        ),
        dictionary=expand(f"{RESULTS}/tables/dictionary.{{kind}}", kind=["csv", "json"]),
    log:
        f"{RESULTS}/logs/tables.log",
    conda:
        "environment.yaml"
    params:
        folder=lambda w, output: os.path.dirname(output[0]),
    shell:
        "fsexp tables --plan {input.plan:q} --output {params.folder:q} 2>&1 | tee {log:q}"
