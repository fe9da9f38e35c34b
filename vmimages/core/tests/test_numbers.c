/* Checksums, LEB128, numbers in text, names of errors. */
#include <errno.h>
#include <stdint.h>

#include "check.h"
#include "crc32.h"
#include "errname.h"
#include "leb128.h"
#include "number.h"

static void test_crc32(void)
{
    char long_text[1000];
    uint32_t bit_by_bit = 0xffffffff;

    CHECK(crc32_update(0, "123456789", 9) == 0xcbf43926);
    CHECK(crc32_update(0, "", 0) == 0);
    for (size_t cut = 0; cut <= 9; cut++)
        CHECK(crc32_update(crc32_update(0, "123456789", cut), "123456789" + cut, 9 - cut)
              == 0xcbf43926);
    for (size_t at = 0; at < sizeof long_text; at++) {
        long_text[at] = (char)(at * 7 + at / 13);
        bit_by_bit ^= (uint8_t)long_text[at];
        for (int bit = 0; bit < 8; bit++)
            bit_by_bit = bit_by_bit >> 1 ^ ((bit_by_bit & 1) != 0 ? 0xedb88320 : 0);
    }
    CHECK(crc32_update(0, long_text, sizeof long_text) == ~bit_by_bit);
}

static void test_leb128(void)
{
    static const struct {
        uint8_t bytes[12];
        size_t length;
        bool good;
        uint64_t value;
    } cases[] = {
        { { 0 }, 1, true, 0 },
        { { 0x7f }, 1, true, 127 },
        { { 0x80, 0x01 }, 2, true, 128 },
        { { 0xe5, 0x8e, 0x26 }, 3, true, 624485 },
        { { 0x80, 0x00 }, 2, true, 0 },
        { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 }, 10, true, UINT64_MAX },
        /* too large: bit 64, an eleventh byte */
        { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02 }, 10, false, 0 },
        { { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00 }, 11, false, 0 },
        { { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x81, 0x00 }, 11, false, 0 },
        /* cut off */
        { { 0 }, 0, false, 0 },
        { { 0x80 }, 1, false, 0 },
        { { 0xff, 0xff, 0xff }, 3, false, 0 },
    };

    for (size_t row = 0; row < sizeof cases / sizeof cases[0]; row++) {
        const uint8_t *at = cases[row].bytes;
        uint64_t value = 0;
        bool good = leb128_read(&at, cases[row].bytes + cases[row].length, &value);
        CHECK(good == cases[row].good);
        CHECK(at <= cases[row].bytes + cases[row].length);
        if (!cases[row].good)
            continue;
        CHECK(value == cases[row].value);
        CHECK(at == cases[row].bytes + cases[row].length);
        at = cases[row].bytes;
        CHECK(leb128_read_trusted(&at) == cases[row].value);
        CHECK(at == cases[row].bytes + cases[row].length);
    }
}

static void test_text(void)
{
    uint64_t value;
    char text[9];

    CHECK(number_decimal("18446744073709551615", &value) && value == UINT64_MAX);
    CHECK(!number_decimal("18446744073709551616", &value));
    CHECK(!number_decimal("99999999999999999999", &value));
    CHECK(!number_decimal("", &value));
    CHECK(!number_decimal("1a", &value));
    CHECK(!number_decimal("-1", &value));
    CHECK(number_hexadecimal("0xEf53", &value) && value == 0xef53);
    CHECK(number_hexadecimal("0xffffffffffffffff", &value) && value == UINT64_MAX);
    CHECK(!number_hexadecimal("0x10000000000000000", &value));
    CHECK(!number_hexadecimal("0x", &value));
    CHECK(!number_hexadecimal("ef53", &value));
    CHECK(!number_hexadecimal("", &value));
    number_hexadecimal_text(0xa1, text);
    CHECK_TEXT(text, "000000a1");
}

static void test_errname(void)
{
    CHECK_TEXT(errname(0), "");
    CHECK_TEXT(errname(ENOSPC), "ENOSPC");
    CHECK_TEXT(errname(EAGAIN), "EAGAIN");
    CHECK_TEXT(errname(EOPNOTSUPP), "EOPNOTSUPP");
    CHECK_TEXT(errname(EHWPOISON), "EHWPOISON");
    CHECK_TEXT(errname(-1), "E?");
    CHECK_TEXT(errname(41), "E?");
    CHECK_TEXT(errname(100000), "E?");
    for (int error = 1; error <= 133; error++)
        CHECK(error == 41 || error == 58 || strcmp(errname(error), "E?") != 0);
}

int main(void)
{
    test_crc32();
    test_leb128();
    test_text();
    test_errname();
    return checks_outcome("numbers");
}
