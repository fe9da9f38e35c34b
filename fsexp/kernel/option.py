"""Options of kernel configurations: those that change what filesystem work costs, and where kernels differ in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# As menuconfig writes an option that is off, and what is shown where a configuration does not have it at all.
OFF = "n"
ABSENT = "not there"

_LINE = re.compile(r"CONFIG_(\w+)=(.*)|# CONFIG_(\w+) is not set")


@dataclass(frozen=True)
class Option:
    """One row: the option's name, newest first where it had several, and what it costs or saves."""

    names: tuple[str, ...]
    reason: str

    def value(self, configuration: dict[str, str]) -> str:
        return next((configuration[name] for name in self.names if name in configuration), ABSENT)


@dataclass(frozen=True)
class Row:
    """An option in which kernels differ; `values` follow the kernels."""

    option: Option
    values: tuple[str, ...]


@dataclass(frozen=True)
class Differences:
    """Between several configurations.

    `rows` are the options that matter for filesystem work. Of all `options` that occur in any of them `differing`
    have other values; `absent` more are off in some and not there in others, which comes to the same.
    """

    rows: tuple[Row, ...]
    options: int
    differing: int
    absent: int


def read(path: Path) -> dict[str, str] | None:
    """A configuration file as option -> value, without CONFIG_ and quotes; None where it can't be read."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = {}
    for line in text.splitlines():
        if match := _LINE.fullmatch(line):
            found[match[1] or match[3]] = OFF if match[3] else _unquoted(match[2])
    return found


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value


def differences(configurations: Sequence[dict[str, str]]) -> Differences:
    """What configurations, as `read` gives them, differ in."""
    rows = [Row(one, tuple(one.value(configuration) for configuration in configurations)) for one in MATTERS]
    names = set().union(*configurations)
    unequal = [name for name in names if len({found.get(name, ABSENT) for found in configurations}) > 1]
    differing = sum(_matters([found.get(name, ABSENT) for found in configurations]) for name in unequal)
    return Differences(
        rows=tuple(row for row in rows if _matters(row.values)),
        options=len(names),
        differing=differing,
        absent=len(unequal) - differing,
    )


def _matters(values: Sequence[str]) -> bool:
    """An option that is off costs as much as one that is not there."""
    return len({OFF if value == ABSENT else value for value in values}) > 1


def _options(**reasons: str) -> tuple[Option, ...]:
    """NAME or NEW__OLD__OLDER: what it changes."""
    return tuple(Option(tuple(names.split("__")), reason) for names, reason in reasons.items())


# Names are those of Linux for x86-64; older ones behind the newest. Options that a mitigation got long after it had
# come (MITIGATION_MDS, _TAA, _L1TF and more) are no rows: a kernel without the option may well have the mitigation.
MATTERS = _options(
    # Time and scheduling
    HZ="timer interrupts in a second; how finely timeouts and delays wait",
    NO_HZ_COMMON__NO_HZ="whether an idle processor is still woken by every tick",
    NO_HZ_FULL="bookkeeping at the way into and out of the kernel, where it is switched on at boot",
    HIGH_RES_TIMERS="delays finer than a tick, those of simulated disks among them",
    PREEMPT_NONE="the kernel is interrupted by another task only where it waits or returns",
    PREEMPT_VOLUNTARY="more places where the kernel asks whether to let another task run",
    PREEMPT="the kernel can be interrupted nearly everywhere: a check at the end of each locked section",
    PREEMPT_LAZY="as PREEMPT, but ordinary tasks wait for the next tick",
    PREEMPT_RT="spinlocks become locks that sleep",
    PREEMPT_DYNAMIC="the model of preemption is chosen at boot, its checks are compiled in",
    PREEMPT_COUNT="a counter that each spinlock raises and lowers",
    SMP="locks and atomic operations for several processors",
    NR_CPUS="the size of what is kept for each processor, and of masks of them",
    NUMA="memory is chosen by node",
    PARAVIRT="operations on interrupts and page tables go by way of a table that is patched at boot",
    PARAVIRT_XXL="the same for the operations that only Xen's guests replace",
    VIRT_CPU_ACCOUNTING_GEN="time is counted at each way into and out of the kernel, where it is switched on at boot",
    IRQ_TIME_ACCOUNTING="the clock is read at the start and end of each interrupt",
    PSI="stalls for memory and disks are counted at each wait",
    SCHEDSTATS="statistics at each wait",
    TASK_DELAY_ACCT="delays of each task are counted at each wait for a disk",
    # Code as the compiler makes it
    CC_OPTIMIZE_FOR_PERFORMANCE="compiled by -O2, as kernels without the option are",
    CC_OPTIMIZE_FOR_PERFORMANCE_O3="compiled by -O3",
    CC_OPTIMIZE_FOR_SIZE="compiled by -Os: smaller, and more instructions for the same",
    X86_NATIVE_CPU="compiled for the processor of the machine that built it",
    LTO_CLANG="the whole kernel is optimised at once",
    CFI__CFI_CLANG="each indirect call checks its target's type",
    FRAME_POINTER="each function keeps a frame pointer",
    JUMP_LABEL="switches that are rarely used are patched into the code, not read from memory",
    # Clearing and checking
    INIT_STACK_NONE="local variables are left as they are, as in kernels without the option",
    INIT_STACK_ALL_PATTERN="local variables are filled in each function",
    INIT_STACK_ALL_ZERO="local variables are cleared in each function",
    INIT_ON_ALLOC_DEFAULT_ON="memory is cleared when it is allocated: every page and every object",
    INIT_ON_FREE_DEFAULT_ON="memory is cleared when it is freed",
    ZERO_CALL_USED_REGS="registers are cleared at the end of each function",
    KSTACK_ERASE__GCC_PLUGIN_STACKLEAK="the stack is cleared after each system call",
    STACKPROTECTOR__CC_STACKPROTECTOR="functions with buffers check the stack before they return",
    STACKPROTECTOR_STRONG__CC_STACKPROTECTOR_STRONG="the same in many more functions",
    FORTIFY_SOURCE="copies of memory and strings check the size of their target",
    HARDENED_USERCOPY="each copy from or to a program checks the object it touches",
    LIST_HARDENED="each change of a list checks its neighbours",
    DEBUG_LIST="the same, in full and by a call",
    BUG_ON_DATA_CORRUPTION="turns checks of lists on",
    REFCOUNT_FULL="counters of references check for overflow",
    UBSAN="operations whose result C does not define are checked, by kind",
    UBSAN_BOUNDS="each access to an array is checked",
    UBSAN_SHIFT="each shift is checked",
    VMAP_STACK="a new task's stack is mapped page by page",
    RANDOMIZE_BASE="the kernel lies at another address each boot, unless nokaslr is given",
    RANDOMIZE_MEMORY="so do its regions of memory",
    RANDOMIZE_KSTACK_OFFSET_DEFAULT="each system call moves the stack by a random number",
    # Mitigations of the processor's flaws
    CPU_MITIGATIONS__SPECULATION_MITIGATIONS="all mitigations, as far as the processor needs them",
    MITIGATION_PAGE_TABLE_ISOLATION__PAGE_TABLE_ISOLATION="page tables change at each system call",
    MITIGATION_RETPOLINE__RETPOLINE="indirect calls go by way of a detour",
    MITIGATION_RETHUNK__RETHUNK="so do returns",
    MITIGATION_UNRET_ENTRY__CPU_UNRET_ENTRY="predictions of returns are made harmless at each way into the kernel",
    MITIGATION_IBPB_ENTRY__CPU_IBPB_ENTRY="predictions are thrown away at each way into the kernel",
    MITIGATION_IBRS_ENTRY__CPU_IBRS_ENTRY="predictions are restricted at each way into the kernel",
    MITIGATION_SRSO__CPU_SRSO="returns are made safe from speculation, by more code",
    MITIGATION_SLS__SLS="an instruction more behind each return and jump",
    MITIGATION_CALL_DEPTH_TRACKING__CALL_DEPTH_TRACKING="padding before each function, calls counted if need be",
    MITIGATION_SPECTRE_BHI="the history of branches is cleared at each system call",
    MITIGATION_ITS="indirect calls and returns are moved to safe places",
    X86_KERNEL_IBT="an instruction more at the start of functions that are called indirectly",
    FINEIBT="each indirect call checks a hash at its target",
    # Allocators
    SLAB="the allocator of objects up to 6.7 beside SLUB",
    SLUB="the allocator of objects",
    SLOB="the allocator of objects for very small machines, up to 6.3",
    SLUB_TINY="SLUB without its caches for each processor",
    SLUB_CPU_PARTIAL="more free objects are kept for each processor",
    SLUB_DEBUG="checks of objects can be switched on at boot; more code",
    SLUB_DEBUG_ON="checks of each object are on",
    SLAB_FREELIST_RANDOM="the order of new objects is random",
    SLAB_FREELIST_HARDENED="pointers to free objects are encoded",
    SLAB_BUCKETS="objects whose size a program chooses have caches of their own",
    RANDOM_KMALLOC_CACHES="sixteen caches for each size, chosen by the caller",
    SHUFFLE_PAGE_ALLOCATOR="the order of free pages is random, where it is switched on at boot",
    MEM_ALLOC_PROFILING="each allocation is counted by the line that asks for it",
    TRANSPARENT_HUGEPAGE="pages of 2 MiB for programs, and in newer kernels for files",
    TRANSPARENT_HUGEPAGE_ALWAYS="the same without being asked",
    PER_VMA_LOCK="page faults do not share one lock",
    # Looking for bugs
    KASAN="each access to memory is checked",
    KMSAN="each use of memory is checked for having been written",
    KCSAN="accesses are checked for races",
    KFENCE="some allocations are guarded, where a time between them is set",
    DEBUG_KMEMLEAK="each allocation is remembered",
    DEBUG_PAGEALLOC="free pages are unmapped, where it is switched on at boot",
    PAGE_POISONING="free pages are filled, where it is switched on at boot",
    DEBUG_VM="checks in the handling of pages",
    DEBUG_VFS="checks in the layer above all filesystems",
    PROVE_LOCKING="the order of all locks is checked",
    LOCK_STAT="waits for locks are counted",
    DEBUG_LOCK_ALLOC="freed locks are checked for being held",
    DEBUG_SPINLOCK="spinlocks check themselves, and are calls",
    DEBUG_MUTEXES="mutexes check themselves",
    DEBUG_PREEMPT="each use of a processor's own data is checked",
    DEBUG_ATOMIC_SLEEP="whatever may wait checks that it is allowed to",
    DEBUG_OBJECTS="timers and the like are tracked",
    # Tracing
    FTRACE="tracing at all",
    FUNCTION_TRACER="each function begins with a place for a call, which is patched to nothing at boot",
    DYNAMIC_FTRACE="that place is patched; without it each function calls the tracer",
    IRQSOFF_TRACER="calls wherever interrupts are switched off and on",
    PREEMPT_TRACER="calls wherever preemption is switched off and on",
    TRACEPOINTS="places in the code where events can be watched",
    KPROBES="functions can be watched; parts of the code are kept whole for it",
    BLK_DEV_IO_TRACE="places for watching requests to disks",
    # Security modules
    SECURITY="each operation on files asks the security modules",
    SECURITY_PATH="so do operations by path",
    SECURITY_SELINUX="labels on each file, where it is switched on",
    SECURITY_APPARMOR="profiles by path, where it is switched on",
    SECURITY_SMACK="labels on each file, where it is switched on",
    SECURITY_TOMOYO="rules by path, where they are switched on",
    SECURITY_LANDLOCK="rules by path that programs give themselves",
    BPF_LSM="a hook for programs at each operation",
    DEFAULT_SECURITY="the security module that is on by default, in older kernels",
    LSM="the security modules that are on by default",
    IMA="files can be measured when they are opened",
    EVM="attributes of files can be protected",
    AUDIT="system calls can be recorded",
    AUDITSYSCALL="bookkeeping at each system call while rules are there",
    SECCOMP="system calls can be filtered",
    # Control groups
    CGROUPS="control groups at all",
    MEMCG__CGROUP_MEM_RES_CTLR="each page of the cache is charged to a group",
    MEMCG_KMEM__CGROUP_MEM_RES_CTLR_KMEM="so are inodes, directory entries and the like; newer kernels with MEMCG",
    BLK_CGROUP="requests to disks belong to a group",
    BLK_DEV_THROTTLING="requests can be slowed down by group",
    CGROUP_WRITEBACK="so can writing back",
    CGROUP_SCHED="groups in the scheduler",
    # Disks
    BLK_DEV_INTEGRITY="requests can carry checksums",
    BLK_INLINE_ENCRYPTION="requests can carry keys",
    BLK_WBT="writing back is slowed down while reads wait",
    DEFAULT_IOSCHED="the order in which requests go to disks, in older kernels",
    # Filesystems
    FSNOTIFY="changes of files can be watched",
    FANOTIFY="the same for whole mounts",
    FS_ENCRYPTION__EXT4_FS_ENCRYPTION__EXT4_ENCRYPTION="a check for keys at each opened or named file",
    FS_VERITY="each opened file is asked whether it is protected",
    FS_DAX="files can be mapped without the cache",
    UNICODE="names can be compared without case",
    QUOTA="space and inodes can be counted by owner",
    EXT4_FS_XATTR="attributes of files; later kernels always have them",
    EXT4_FS_POSIX_ACL="access lists: a look at the parent's attributes for each new file",
    EXT4_FS_SECURITY="labels of security modules on files",
    EXT4_DEBUG="messages for debugging, compiled in",
    JBD2_DEBUG="the same in ext4's journal",
    BTRFS_FS_POSIX_ACL="access lists: a look at the parent's attributes for each new file",
    BTRFS_DEBUG="more checks, and other decisions for the sake of testing",
    BTRFS_ASSERT="checks of what must be true",
    BTRFS_FS_REF_VERIFY="each reference to an extent is checked",
    BTRFS_FS_CHECK_INTEGRITY="each block that is written can be checked",
    BTRFS_EXPERIMENTAL="what is not finished yet, some of it on by default",
    XFS_QUOTA="space and inodes can be counted by owner",
    XFS_POSIX_ACL="access lists: a look at the parent's attributes for each new file",
    XFS_DEBUG="many checks, some of them slow",
    XFS_WARN="checks that only warn",
    XFS_ONLINE_SCRUB="the filesystem can be checked while it is mounted: hooks in its code",
    # Checksums
    CRC_OPTIMIZATIONS__CRYPTO_CRC32C_INTEL="checksums of metadata by the processor's own instruction",
)
