/* Arrays in files: .npy files of NumPy, and the bytes alone. */
#ifndef NPY_H
#define NPY_H

#include "network.h"

/* The values of an input in a file, to be freed: a .npy file of its type and shape, or as many
   bytes as it has, in C order and little-endian. Exits if the file has something else. */
unsigned char *read_numbers(const char *path, const struct array *array);

/* Writes FOLDER/NAME.npy; the folder is made if needed. Exits if that fails. */
void write_numbers(const char *folder, const struct array *array, const unsigned char *bytes);

#endif
