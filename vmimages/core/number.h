/* Numbers in text. */
#ifndef CORE_NUMBER_H
#define CORE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Read a whole string: decimal digits, or "0x" and hexadecimal digits, of at most 64 bits. False
 * when it is anything else. */
bool number_decimal(const char *text, uint64_t *value);
bool number_hexadecimal(const char *text, uint64_t *value);

/* Eight lower-case hexadecimal digits and a NUL. */
void number_hexadecimal_text(uint32_t value, char text[9]);

#endif
