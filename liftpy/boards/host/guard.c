#define _POSIX_C_SOURCE 200112L

#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

enum { WAITING = 10 }; /* seconds between two messages of a waiting run: signs of life */

static void end(int signal)
{
    (void)signal;
    _exit(LATE);
}

void end_after(size_t seconds)
{
    signal(SIGALRM, end);
    alarm((unsigned)seconds);
}

void hold(const char *file)
{
    struct flock whole = {0};
    int descriptor = open(file, O_RDWR | O_CREAT, 0600);
    if (descriptor < 0)
        give_up("%s cannot be written: %s", file, strerror(errno));
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    for (unsigned tries = 0; fcntl(descriptor, F_SETLK, &whole); tries++) {
        if (errno != EACCES && errno != EAGAIN && errno != EINTR)
            give_up("%s cannot be locked: %s", file, strerror(errno));
        if (tries % WAITING == 0)
            fprintf(stderr, "board: waiting for another run, which holds %s\n", file);
        sleep(1);
    }
}

char *boot(void)
{
    char found[64] = "";
    int descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY);
    ssize_t count = descriptor < 0 ? 0 : read(descriptor, found, sizeof found - 1);
    if (descriptor >= 0)
        close(descriptor);
    found[count < 0 ? 0 : count] = 0;
    found[strcspn(found, "\n")] = 0;
    return copied(found);
}
