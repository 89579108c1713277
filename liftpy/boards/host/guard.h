/* What a program that is started over a link needs: an end in time, one run at a time, and a sign
   of whether the machine was started again. */
#ifndef GUARD_H
#define GUARD_H

#include <stddef.h>

enum { LATE = 124 }; /* the exit code of a run that a limit ended, as that of timeout(1) */

/* Ends the program with the code LATE after this many seconds; a second call replaces the first,
   and 0 cancels it. */
void end_after(size_t seconds);

/* Waits until no other process holds this file, and holds it until the program ends. Exits if the
   file cannot be created. */
void hold(const char *file);

/* An identifier that the system chose when it was started, to be freed; empty if it has none. */
char *boot(void);

#endif
