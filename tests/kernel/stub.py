"""A tree that builds as a kernel's does, in a second: real make and compiler, and a bzImage that is made beforehand."""

import packages

# What a configuration may hold: the stub's Kconfig, as lines of .config.
KNOWN = ["CONFIG_64BIT=y", "CONFIG_SMP=y", "CONFIG_EXT4_FS=y", "CONFIG_OWN=y", "CONFIG_SCSI_WAIT_SCAN=m"]

_MAKEFILE = """\
VERSION = {version[0]}
PATCHLEVEL = {version[1]}
SUBLEVEL = {version[2]}
EXTRAVERSION = {extra}

allnoconfig:
\tgrep -Fxf known $(KCONFIG_ALLCONFIG) > .config; echo CONFIG_SCSI_WAIT_SCAN=m >> .config

oldconfig:
\tread answer && grep -Fxf known .config > .config.new; mv .config.new .config

bzImage:
\tenv | grep -E '^(KBUILD|ARCH|LC_ALL|CFLAGS|MY_)' | sort > environment
\t$(CC) -c -o main.o main.c
\tmkdir -p arch/x86/boot && cp image arch/x86/boot/bzImage

modules:
\techo kernel/fs/ext4/ext4.ko > modules.builtin

modules_install:
\tmkdir -p $(INSTALL_MOD_PATH)/lib/modules/{name}/kernel/drivers/scsi
\tcp module $(INSTALL_MOD_PATH)/lib/modules/{name}/kernel/drivers/scsi/scsi_wait_scan.ko
"""


def make(folder, name="6.1.2", main="int main_symbol;\n"):
    """Fill the folder; `main` is the C source that the build compiles."""
    numbers = name.split(".")
    extra = f".{numbers[3]}" if len(numbers) > 3 else ""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Makefile").write_text(_MAKEFILE.format(version=numbers, extra=extra, name=name))
    (folder / "Kconfig").write_text("mainmenu stub\n")
    (folder / "known").write_text("\n".join(KNOWN) + "\n")
    (folder / "main.c").write_text(main)
    (folder / "image").write_bytes(packages.make_bzimage(b"\x1f\x8bstub", release=name))
    (folder / "module").write_bytes(packages.make_module(release=name))
    for path, text in {
        "include/linux/compiler-gcc4.h": "",
        "kernel/timeconst.pl": "if (!defined(@val)) {\n",
        "include/acpi/acpiosxf.h": "acpi_status __initdata acpi_os_initialize(void);\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder
