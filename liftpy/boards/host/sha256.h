/* SHA-256 (FIPS 180-4), so that a file says whether it arrived as it was sent. */
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>

/* Writes the hash of some bytes as 64 hex digits. */
void sha256(const unsigned char *bytes, size_t size, char digits[65]);

#endif
