/* What the guest reads: its setup, the table of aliases, the kernel's list of mounts. */
#include <stdlib.h>
#include <sys/mount.h>

#include "check.h"
#include "modprobe.h"
#include "mount.h"
#include "mountinfo.h"
#include "setup.h"

static void test_mountinfo(void)
{
    char text[] =
        "15 1 0:2 / / rw - rootfs rootfs rw\n"
        "20 15 1:0 / /a\\040b\\011c rw,noatime shared:1 master:2 - ext4 /dev/ram\\0400 rw,x=\\054\n"
        "21 15 0:7 / /mnt rw - tmpfs none rw\n"
        "garbage\n"
        "22 15 1:1 / /mnt rw,relatime - btrfs /dev/ram1 rw,space_cache=v2,subvol=/\n"
        "23 15 1:1 / /mnt/x rw,relatime - btrfs /dev/ram1\n";
    char again[sizeof text];
    struct mountinfo mount;

    memcpy(again, text, sizeof text);
    CHECK(mountinfo_find(again, "/mnt", &mount));
    CHECK_TEXT(mount.filesystem, "btrfs");
    CHECK_TEXT(mount.device, "/dev/ram1");
    CHECK_TEXT(mount.mount_options, "rw,relatime");
    CHECK_TEXT(mount.super_options, "rw,space_cache=v2,subvol=/");
    memcpy(again, text, sizeof text);
    CHECK(mountinfo_find(again, "/a b\tc", &mount));
    CHECK_TEXT(mount.device, "/dev/ram 0");
    CHECK_TEXT(mount.mount_options, "rw,noatime");
    CHECK_TEXT(mount.super_options, "rw,x=\\054");
    memcpy(again, text, sizeof text);
    CHECK(!mountinfo_find(again, "/mnt/x", &mount)); /* a cut line is no proof */
    CHECK(!mountinfo_find(text, "/mn", &mount));
    CHECK(!mountinfo_find(again + strlen(again), "/", &mount));
}

static void test_options(void)
{
    unsigned long flags;
    char data[16];

    CHECK(mount_split_options("", &flags, data, sizeof data) == 0);
    CHECK(flags == 0);
    CHECK_TEXT(data, "");
    CHECK(mount_split_options("noatime,a=1,ro,,b", &flags, data, sizeof data) == 0);
    CHECK(flags == (MS_NOATIME | MS_RDONLY));
    CHECK_TEXT(data, "a=1,b");
    CHECK(mount_split_options("relatime,nodiratime,sync,nosuid,nodev,", &flags, data, sizeof data)
          == 0);
    CHECK(flags == (MS_RELATIME | MS_NODIRATIME | MS_SYNCHRONOUS | MS_NOSUID | MS_NODEV));
    CHECK_TEXT(data, "");
    CHECK(mount_split_options("read,rox", &flags, data, sizeof data) == 0);
    CHECK(flags == 0);
    CHECK_TEXT(data, "read,rox");
    CHECK(mount_split_options("123456789012345", &flags, data, sizeof data) == 0);
    CHECK(mount_split_options("1234567890123456", &flags, data, sizeof data) == -1);
    CHECK(mount_split_options("12345678,123456", &flags, data, sizeof data) == 0);
    CHECK(mount_split_options("12345678,1234567", &flags, data, sizeof data) == -1);
}

static void test_devices(void)
{
    CHECK(mount_names_device("/dev/sda", "noatime", "/dev/sda"));
    CHECK(!mount_names_device("/dev/sda", "noatime", "/dev/sdb"));
    CHECK(mount_names_device("/dev/sda", "a,device=/dev/nullb0", "/dev/nullb0"));
    CHECK(mount_names_device("/dev/sda", "device=/dev/nullb0,device=/dev/sdb,b", "/dev/sdb"));
    CHECK(!mount_names_device("/dev/sda", "device=/dev/nullb01", "/dev/nullb0"));
    CHECK(!mount_names_device("/dev/sda", "device=/dev/nullb0", "/dev/nullb01"));
    CHECK(!mount_names_device("/dev/sda", "xdevice=/dev/nullb0", "/dev/nullb0"));
    CHECK(!mount_names_device("/dev/sda", "", ""));
}

static void test_aliases(void)
{
    static const char table[] = "crc32c\t/m/a.ko\t/m/b.ko\n"
                                "crypto-crc32c\t/m/c.ko\n"
                                "fs_ext4\n"
                                "fs-ext4\t/m/e.ko";
    char text[sizeof table];

    memcpy(text, table, sizeof table);
    CHECK_TEXT(modprobe_find(text, "crc32c"), "/m/a.ko\t/m/b.ko");
    memcpy(text, table, sizeof table);
    CHECK_TEXT(modprobe_find(text, "crypto_crc32c"), "/m/c.ko");
    memcpy(text, table, sizeof table);
    CHECK_TEXT(modprobe_find(text, "fs-ext4"), "/m/e.ko");
    CHECK(modprobe_find(text, "crypto") == NULL);
    CHECK(modprobe_find(text, "") == NULL);
    CHECK(modprobe_find(text + strlen(text), "x") == NULL);
}

static void test_setup(void)
{
    char text[] = "fsexp-setup\t1\n"
                  "module\t/m/a.ko\trd_nr=1 rd_size=2\n"
                  "module\t/m/b.ko\t\n"
                  "module\t/m/c.ko\n"
                  "disk\t/dev/ram0\t1048576\n"
                  "mount\t/dev/ram0\text4\t/mnt\t\t0xEF53\n"
                  "command\t/mnt\tsh\t-c\t\tx y\n"
                  "filesystem\tconfigfs\t/sys/kernel/config\n"
                  "mkdir\t/sys/kernel/config/nullb/nullb0\n"
                  "write\t/sys/fs/bcache/register\t/dev/sda\n"
                  "wait\t/sys/block/bcache0\n"
                  "export\t/dev/ram0\t/dev/vda\n"
                  "export\t/dev/ram1\t/dev/vda\t1048576\n"
                  "calibrate\t/dev/ram0\n";
    struct setup setup;
    struct failure failure;

    CHECK(setup_parse(text, sizeof text - 1, &setup, &failure) == 0);
    CHECK(setup.count == 13);
    CHECK_TEXT(setup_step_name(&setup.steps[0]), "module");
    CHECK_TEXT(setup.steps[0].fields[1], "rd_nr=1 rd_size=2");
    CHECK(setup.steps[1].count == 2);
    CHECK_TEXT(setup.steps[1].fields[1], "");
    CHECK(setup.steps[2].count == 1);
    CHECK_TEXT(setup.steps[4].fields[3], "");
    CHECK(setup.steps[5].count == 5);
    CHECK_TEXT(setup.steps[5].fields[3], "");
    CHECK_TEXT(setup.steps[5].fields[4], "x y");
    CHECK(setup.steps[5].fields[5] == NULL);
    setup_free(&setup);
}

static void test_bad_setups(void)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        { "", "it is empty, cut off or not text" },
        { "fsexp-setup\t1", "it is empty, cut off or not text" },
        { "fsexp-setup\t2\n", "it is not a setup of version 1" },
        { "\n", "it is not a setup of version 1" },
        { "fsexp-setup\t1\nfly\t/a\n", "line 2 (fly): there is no such directive" },
        { "fsexp-setup\t1\n\n", "line 2 (): there is no such directive" },
        { "fsexp-setup\t1\ndisk\t/dev/ram0\n", "line 2 (disk): it has too few fields" },
        { "fsexp-setup\t1\numount\t/a\t/b\n", "line 2 (umount): it has too many fields" },
        { "fsexp-setup\t1\nwrite\t/a\t\n",
          "line 2 (write): one of its fields is not what it has to be" },
        { "fsexp-setup\t1\nexport\t/a\t/b\tc\n",
          "line 2 (export): one of its fields is not what it has to be" },
        { "fsexp-setup\t1\numount\ta\n",
          "line 2 (umount): one of its fields is not what it has to be" },
        { "fsexp-setup\t1\numount\t/a\ndisk\t/a\t1k\n",
          "line 3 (disk): one of its fields is not what it has to be" },
        { "fsexp-setup\t1\nmount\td\text4\t/m\t\tef53\n",
          "line 2 (mount): one of its fields is not what it has to be" },
        { "fsexp-setup\t1\nmount\td\text4\t/m\t\t0x1ffffffff\n",
          "line 2 (mount): one of its fields is not what it has to be" },
        { "fsexp-setup\t1\ncommand\t/\t\n",
          "line 2 (command): one of its fields is not what it has to be" },
    };

    for (size_t row = 0; row < sizeof cases / sizeof cases[0]; row++) {
        char *text = strdup(cases[row].text);
        struct setup setup;
        struct failure failure;
        CHECK(setup_parse(text, strlen(text), &setup, &failure) == -1);
        CHECK_TEXT(failure.step, "setup");
        CHECK_TEXT(failure.message, cases[row].message);
        setup_free(&setup);
        free(text);
    }
}

int main(void)
{
    test_mountinfo();
    test_options();
    test_devices();
    test_aliases();
    test_setup();
    test_bad_setups();
    return checks_outcome("setup");
}
