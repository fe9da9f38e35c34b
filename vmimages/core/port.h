/* The serial port that records leave by. */
#ifndef CORE_PORT_H
#define CORE_PORT_H

/* Open a serial port for writing and set it raw: bytes go out as they are, nothing comes back as an
 * echo. The descriptor, or -1 with errno. Nothing is written. */
int port_open(const char *path);

#endif
