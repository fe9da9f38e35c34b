#include "number.h"

#include <stdio.h>
#include <string.h>

static bool read_digits(const char *text, unsigned base, uint64_t *value)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t sum = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        const char *digit = memchr(digits, *text, base);
        if (digit == NULL || sum > UINT64_MAX / base)
            return false;
        sum *= base;
        if (sum > UINT64_MAX - (uint64_t)(digit - digits))
            return false;
        sum += (uint64_t)(digit - digits);
    }
    *value = sum;
    return true;
}

bool number_decimal(const char *text, uint64_t *value)
{
    return read_digits(text, 10, value);
}

bool number_hexadecimal(const char *text, uint64_t *value)
{
    char lower[17];
    size_t length;

    if (text[0] != '0' || text[1] != 'x')
        return false;
    length = strlen(text + 2);
    if (length >= sizeof lower)
        return false;
    for (size_t at = 0; at <= length; at++) {
        char letter = text[2 + at];
        lower[at] = letter >= 'A' && letter <= 'F' ? (char)(letter - 'A' + 'a') : letter;
    }
    return read_digits(lower, 16, value);
}

void number_hexadecimal_text(uint32_t value, char text[9])
{
    (void)snprintf(text, 9, "%08x", (unsigned)value);
}
