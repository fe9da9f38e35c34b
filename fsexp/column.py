"""The columns of the tables, with units and meanings: what dictionary.csv says.

Other programs read the tables, so a column keeps its name, unit and type once it exists.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column: `type` is an Arrow type's name, `unit` is empty for a quantity without one."""

    name: str
    type: str
    unit: str
    meaning: str


def text(name: str, meaning: str) -> Column:
    """A column of text."""
    return Column(name, "string", "", meaning)


def count(name: str, unit: str, meaning: str) -> Column:
    """A column of whole numbers."""
    return Column(name, "int64", unit, meaning)


EXPERIMENT = text("experiment", "name of the experiment in the configuration")
CLOCK = text("clock", "virtual (a fixed time for each instruction) or wall (real time)")
SEED = count("seed", "", "seed of the run; runs of a cell that differ only in it are replicates")

# What follows the key columns (experiment, one column a factor, clock, seed) in each table.
COLUMNS = {
    "runs": (
        text("outcome", "how the run ended: ok, or the one reason why it has no figures"),
        text("reason", "the outcome in a sentence; empty when it is ok"),
        text("release", "kernel release that the guest reported; empty when it did not"),
        text("kernel_digest", "SHA-256 of the kernel: image, configuration, modules"),
        text("image_digest", "SHA-256 of the disk image written before the run"),
        text("ops_digest", "SHA-256 of the stream of operations that was replayed"),
        text("core_digest", "SHA-256 of the workload core, PID 1 of the guest"),
        text("machine_digest", "SHA-256 of the description of the virtual machine"),
        text("identity", "SHA-256 over the digests of all inputs of the run"),
        Column("wall_s", "float64", "s", "real time of the run on the host"),
        Column("boot_wall_s", "float64", "s", "real time from the start to the first record"),
        text("folder", "folder of the run, relative to the results folder"),
        count("warnings", "1", "warnings on the kernel's console; empty when the run was not booted"),
        text("userland_digest", "SHA-256 of the packages that its programs come from; empty where it ran none"),
    ),
    "phases": (
        text("phase", "name of the timed part of the workload"),
        count("elapsed_ns", "ns", "time of the phase by the clock of the run"),
        count("operations", "1", "operations made in the phase"),
        count("bytes", "B", "bytes that the operations of the phase carried"),
        count("errors", "1", "operations of the phase that failed"),
        count("requests_read", "1", "read requests that the disk served; empty where its driver counts none"),
        count("requests_written", "1", "write requests that the disk served; likewise"),
        count("bytes_read", "B", "bytes read from the disk, all its devices together; likewise"),
        count("bytes_written", "B", "bytes written to the disk, all its devices together; likewise"),
        count("flushes", "1", "flush requests that the disk served; empty before Linux 5.5, which counts none"),
        count("user_ns", "ns", "time of the processor in programs, nice ones too, by /proc/stat in steps of 10 ms"),
        count("system_ns", "ns", "time of the processor in the kernel, interrupts too; likewise"),
        count("idle_ns", "ns", "time of the processor without work; likewise"),
        count("iowait_ns", "ns", "time of the processor without work while a request was under way; likewise"),
    ),
    "operations": (
        text("phase", "name of the timed part of the workload"),
        text("operation", "kind of operation, as create or fsync"),
        count("count", "1", "operations of that kind in the phase"),
        count("bytes", "B", "bytes that they carried"),
        count("p50_ns", "ns", "half of them took at most so long, to an eighth of a power of two"),
        count("p90_ns", "ns", "nine of ten took at most so long; likewise"),
        count("p99_ns", "ns", "99 of a hundred took at most so long; likewise"),
        count("max_ns", "ns", "the longest"),
        count("total_ns", "ns", "all of them together"),
        count("errors", "1", "how many failed"),
    ),
    "commands": (
        text("phase", "the phase that the command ran in; empty outside of phases"),
        text("argv", "the command with its arguments, quoted as a shell takes it"),
        count("status", "", "its exit status; 128 and the signal's number where a signal ended it"),
        count("elapsed_ns", "ns", "time from fork to the end of wait, by the clock of the run"),
        count("output_bytes", "B", "bytes of its standard output and error"),
    ),
    "fio": (
        text("phase", "the phase that fio ran in; empty outside of phases"),
        text("job", "name of fio's job"),
        text("direction", "read, write or trim"),
        count("requests", "1", "requests that fio made"),
        count("bytes", "B", "bytes that they moved"),
        count("runtime_ms", "ms", "time that the job's requests of that direction took, as fio rounds it"),
        Column("iops", "float64", "1/s", "requests a second, as fio says"),
        count("bandwidth_bytes_per_s", "B/s", "bytes a second, as fio says"),
        count("p50_ns", "ns", "half of the requests were complete after so long, by fio's histogram; without fsyncs"),
        count("p90_ns", "ns", "nine of ten; likewise"),
        count("p99_ns", "ns", "99 of a hundred; likewise"),
        count("max_ns", "ns", "the longest"),
    ),
    "space": (
        text("phase", "the phase just ended; empty for the state after the mount"),
        count(
            "block_bytes",
            "B",
            "size of a block as statfs counts them; this and the next four are empty in a row of a kind",
        ),
        count("blocks", "1", "blocks of the filesystem"),
        count("free_blocks", "1", "blocks not in use"),
        count("inodes", "1", "inodes of the filesystem; 0 where it has no fixed number"),
        count("free_inodes", "1", "inodes not in use"),
        text("kind", "filesystem: the row is of all of it, by statfs; else data, metadata or system of btrfs"),
        text("profile", "btrfs's profile of that kind, as single or DUP; empty in a row of the filesystem"),
        count("total_bytes", "B", "of the filesystem: its blocks; of a kind of btrfs: what is allocated to it"),
        count("used_bytes", "B", "of the filesystem: blocks in use; of a kind: what is in use, each copy once"),
        count("raw_used_bytes", "B", "used bytes with all copies of the profile; empty where they are not known"),
    ),
}
