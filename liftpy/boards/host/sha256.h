/* SHA-256 (FIPS 180-4), which verifies that files were copied correctly. */
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>

/* Writes the hash of the bytes as 64 hex digits and a terminating 0. */
void sha256(const unsigned char *bytes, size_t size, char digits[65]);

#endif
