#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

static int set_raw(int port)
{
    struct termios mode;

    if (tcgetattr(port, &mode) != 0)
        return -1;
    mode.c_iflag = 0;
    mode.c_oflag = 0;
    mode.c_lflag = 0;
    /* CLOCAL: no modem, so never wait for a carrier. */
    mode.c_cflag = CS8 | CREAD | CLOCAL;
    /* The emulated port sends at once, but the driver waits as long as the speed says. */
    if (cfsetispeed(&mode, B115200) != 0 || cfsetospeed(&mode, B115200) != 0)
        return -1;
    return tcsetattr(port, TCSANOW, &mode);
}

int port_open(const char *path)
{
    /* O_NONBLOCK so that the open does not wait for a carrier either. */
    int port = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    int flags;

    if (port < 0)
        return -1;
    flags = fcntl(port, F_GETFL);
    if (set_raw(port) != 0 || flags < 0 || fcntl(port, F_SETFL, flags & ~O_NONBLOCK) != 0) {
        int error = errno;
        (void)close(port);
        errno = error;
        return -1;
    }
    return port;
}
