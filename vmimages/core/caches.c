#include "caches.h"

#include "file.h"

int caches_drop(void)
{
    return file_write_text(CACHES_PATH, "3");
}
