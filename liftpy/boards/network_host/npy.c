#define _POSIX_C_SOURCE 200112L

#include "npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "text.h"

static const char MAGIC[] = "\x93NUMPY";
enum { MAGIC_SIZE = 6, ALIGNED = 64 };

/* Adds the type as NumPy spells it, such as <f4. */
static void add_type(struct text *text, const struct scalar *scalar)
{
    static const char KINDS[] = {'f', 'i', 'u', 'b'};
    add(text, "%c%c%zu", scalar->size == 1 ? '|' : '<', KINDS[scalar->kind], scalar->size);
}

/* Adds the shape as Python spells a tuple, with `between` after each comma. */
static void add_shape(struct text *text, const struct array *array, const char *between)
{
    add(text, "(");
    for (size_t i = 0; i < array->rank; i++)
        add(text, "%s%zu%s", i ? between : "", array->length[i],
            i + 1 < array->rank || array->rank == 1 ? "," : "");
    add(text, ")");
}

/* The value of a key in the header, without blanks, up to the end of a word or a tuple. */
static char *value_of(const char *header, const char *key)
{
    struct text found = {0};
    const char *at = strstr(header, key);
    at = at ? strchr(at, ':') : NULL;
    add(&found, "%s", "");
    for (int inside = 0; at && *++at && (inside || (*at != ',' && *at != '}'));) {
        inside += (*at == '(') - (*at == ')');
        if (*at != ' ' && *at != '\'')
            add(&found, "%c", *at);
    }
    return found.bytes;
}

static void expect(const char *path, const struct array *array, const char *what, char *found,
                   struct text *wanted)
{
    if (strcmp(found, wanted->bytes))
        give_up("%s cannot be the input %s: its %s is %s\n%s has the %s %s\nsave it so, with C "
                "order and little-endian",
                path, array->name, what, found, array->name, what, wanted->bytes);
    free(found);
    drop(wanted);
}

/* The bytes after the header of a .npy file. */
static size_t start_of(const char *path, const struct array *array, const unsigned char *bytes,
                       size_t size)
{
    size_t wide = bytes[MAGIC_SIZE] == 1 ? 2 : 4, start = MAGIC_SIZE + 2 + wide, length = 0;
    for (size_t i = 0; i < wide && start <= size; i++)
        length |= (size_t)bytes[MAGIC_SIZE + 2 + i] << 8 * i;
    if (start > size || length > size - start)
        give_up("%s ends within its header: copy it again", path);
    struct text header = {0}, type = {0}, order = {0}, shape = {0};
    add(&header, "%.*s", (int)length, (const char *)bytes + start);
    add_type(&type, array->scalar);
    add(&order, "False");
    add_shape(&shape, array, "");
    expect(path, array, "descr", value_of(header.bytes, "'descr'"), &type);
    expect(path, array, "fortran_order", value_of(header.bytes, "'fortran_order'"), &order);
    expect(path, array, "shape", value_of(header.bytes, "'shape'"), &shape);
    drop(&header);
    return start + length;
}

unsigned char *read_numbers(const char *path, const struct array *array)
{
    size_t size, start = 0;
    unsigned char *bytes = read_file(path, &size);
    if (!bytes)
        give_up("%s cannot be read: it is to be the input %s", path, array->name);
    if (size > MAGIC_SIZE + 2 && !memcmp(bytes, MAGIC, MAGIC_SIZE))
        start = start_of(path, array, bytes, size);
    if (size - start != array->bytes)
        give_up("%s cannot be the input %s: it has %zu bytes of numbers\n%s has %zu\ngive a .npy "
                "file of its type and shape, or the bytes alone",
                path, array->name, size - start, array->name, array->bytes);
    memmove(bytes, bytes + start, array->bytes);
    return bytes;
}

void write_numbers(const char *folder, const struct array *array, const unsigned char *bytes)
{
    struct text path = {0}, header = {0};
    if (mkdir(folder, 0777) && errno != EEXIST)
        give_up("the folder %s cannot be made: %s", folder, strerror(errno));
    add(&path, "%s/%s.npy", folder, array->name);
    add(&header, "{'descr': '");
    add_type(&header, array->scalar);
    add(&header, "', 'fortran_order': False, 'shape': ");
    add_shape(&header, array, " ");
    add(&header, ", }");
    size_t used = MAGIC_SIZE + 4 + header.length + 1;
    add(&header, "%*s\n", (int)((ALIGNED - used % ALIGNED) % ALIGNED), "");
    FILE *file = fopen(path.bytes, "wb");
    const unsigned char start[] = {1, 0, header.length & 255, header.length >> 8 & 255};
    int fine = file && fwrite(MAGIC, 1, MAGIC_SIZE, file) == MAGIC_SIZE
               && fwrite(start, 1, sizeof start, file) == sizeof start
               && fwrite(header.bytes, 1, header.length, file) == header.length
               && fwrite(bytes, 1, array->bytes, file) == array->bytes;
    if (file && fclose(file))
        fine = 0;
    if (!fine)
        give_up("%s cannot be written: %s", path.bytes, strerror(errno));
    drop(&path);
    drop(&header);
}
