#include "text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void give_up(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "%s: ", program_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

void *room_for(size_t count, size_t size)
{
    void *found = calloc(count ? count : 1, size);
    if (!found)
        give_up("out of memory for %zu x %zu bytes", count, size);
    return found;
}

void *one_more(void *array, size_t count, size_t size)
{
    char *found = count < SIZE_MAX / size - 1 ? realloc(array, (count + 1) * size) : NULL;
    if (!found)
        give_up("out of memory for %zu x %zu bytes", count + 1, size);
    memset(found + count * size, 0, size);
    return found;
}

char *copied(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(room_for(size, 1), text, size);
}

static void grow(struct text *text, size_t more)
{
    if (text->length + more + 1 <= text->room)
        return;
    text->room = 2 * (text->length + more + 1);
    text->bytes = realloc(text->bytes, text->room);
    if (!text->bytes)
        give_up("out of memory for a text of %zu bytes", text->room);
}

void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        give_up("cannot format a text as %s", format);
    grow(text, (size_t)length);
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

void add_field(struct text *text, const char *value)
{
    add(text, "\"");
    for (; *value; value++) {
        switch (*value) {
        case '\n': add(text, "\\n"); break;
        case '\r': break;
        case '\\': add(text, "\\\\"); break;
        case '"': add(text, "\"\""); break;
        default: add(text, "%c", *value);
        }
    }
    add(text, "\"");
}

void add_json(struct text *text, const char *value)
{
    add(text, "\"");
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            add(text, "\\%c", *value);
        else if ((unsigned char)*value < 32)
            add(text, "\\u%04x", (unsigned)*value);
        else
            add(text, "%c", *value);
    }
    add(text, "\"");
}

void drop(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

unsigned char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    size_t room = 1 << 16, got;
    if (!file)
        return NULL;
    unsigned char *bytes = room_for(room, 1);
    *size = 0;
    while ((got = fread(bytes + *size, 1, room - *size - 1, file)) > 0) {
        *size += got;
        if (*size + 1 == room) {
            room *= 2;
            bytes = realloc(bytes, room);
            if (!bytes)
                give_up("out of memory for %zu bytes of %s", room, path);
        }
    }
    int broken = ferror(file);
    fclose(file);
    bytes[*size] = 0;
    if (broken) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

char *path_in(const char *folder, const char *name)
{
    struct text path = {0};
    add(&path, "%s/%s", folder, name);
    return path.bytes;
}
