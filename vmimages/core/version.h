/* The version of this program, as its first record gives it. */
#ifndef CORE_VERSION_H
#define CORE_VERSION_H

#define CORE_VERSION "1"

#endif
