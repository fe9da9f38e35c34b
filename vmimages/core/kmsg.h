/* The kernel's log, where messages for people go. */
#ifndef CORE_KMSG_H
#define CORE_KMSG_H

/* Write one line, "fsexp: " before it. A log that cannot be written is ignored: there is nowhere
 * else to complain. */
void kmsg_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
