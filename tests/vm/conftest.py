import pytest
from bench import FILESYSTEMS, KERNELS, NFILES, Bench, experiment, nothing_to_fetch_from


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A study whose inputs are made; its one experiment is crossed with all kernels and filesystems."""
    if nothing_to_fetch_from():
        pytest.skip("no package in the cache, and no Debian mirror can be reached")
    workload = {"name": "create-unlink", "nfiles": NFILES}
    bench = Bench.new(
        tmp_path_factory.mktemp("study") / "prepared", {"small": experiment(workload, KERNELS, FILESYSTEMS)}
    )
    bench.make_inputs()
    return bench
