#include "lines.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"
#include "text.h"

static const char *const BLANK = " \t\r";

int next_line(struct line *line, char **next, const char *path)
{
    if (!**next)
        return 0;
    char *end = strchr(*next, '\n');
    if (!end)
        give_up("%s ends within line %zu: copy the bundle again", path, line->number + 1);
    *end = 0;
    line->number++;
    line->rest = *next;
    *next = end + 1;
    return 1;
}

char *word(struct line *line, const char *what)
{
    line->rest += strspn(line->rest, BLANK);
    char *start = line->rest;
    line->rest += strcspn(line->rest, BLANK);
    if (line->rest == start)
        give_up("plan.txt, line %zu: it lacks a %s", line->number, what);
    if (*line->rest)
        *line->rest++ = 0;
    return start;
}

int is_left(struct line *line)
{
    line->rest += strspn(line->rest, BLANK);
    return *line->rest != 0;
}

size_t number(struct line *line, const char *what)
{
    char *text = word(line, what), *end;
    unsigned long long found = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || found > SIZE_MAX)
        give_up("plan.txt, line %zu: %s is not a valid %s", line->number, text, what);
    return (size_t)found;
}

double fraction(struct line *line, const char *what)
{
    char *text = word(line, what), *end;
    double found = strtod(text, &end);
    if (*end)
        give_up("plan.txt, line %zu: %s is not a valid %s", line->number, text, what);
    return found;
}

int one_of(struct line *line, const char *what, const char *const *words)
{
    char *text = word(line, what);
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], text))
            return i;
    give_up("plan.txt, line %zu: %s is not a valid %s", line->number, text, what);
    return 0;
}

static void poison(struct line *line, unsigned char *bytes, size_t size)
{
    char *text = word(line, "poison");
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        if (strlen(text) != 2 * size || sscanf(text + 2 * i, "%2x", &byte) != 1)
            give_up("plan.txt, line %zu: %s is not %zu bytes in hexadecimal", line->number, text,
                    size);
        bytes[i] = (unsigned char)byte;
    }
}

const struct scalar *scalar_in(struct line *line, const struct scalars *scalars)
{
    char *name = word(line, "type of numbers");
    for (size_t i = 0; i < scalars->count; i++)
        if (!strcmp(scalars->item[i]->name, name))
            return scalars->item[i];
    give_up("plan.txt, line %zu: %s is not a scalar type", line->number, name);
    return NULL;
}

struct data read_data(const char *folder, const char *file, const char *wanted)
{
    char found[65], *path = path_in(folder, file);
    struct data data = {copied(file), NULL, 0};
    data.bytes = read_file(path, &data.size);
    if (!data.bytes)
        give_up("%s cannot be read", path);
    sha256(data.bytes, data.size, found);
    if (strcmp(found, wanted))
        give_up(
            "%s is not the exported file: its SHA-256 is %s, the exported file's is %s. "
            "Copy the bundle again",
            path, found, wanted);
    free(path);
    return data;
}

void read_scalar(struct line *line, struct scalars *scalars)
{
    static const char *const KINDS[] = {"float", "int", "uint", "bool", NULL};
    struct scalar *found = room_for(1, sizeof *found);
    found->name = copied(word(line, "name"));
    found->size = number(line, "size");
    if (found->size > sizeof found->poison[0])
        give_up("plan.txt, line %zu: a scalar has at most 8 bytes", line->number);
    found->kind = one_of(line, "kind of numbers", KINDS);
    poison(line, found->poison[0], found->size);
    poison(line, found->poison[1], found->size);
    scalars->item = one_more(scalars->item, scalars->count, sizeof *scalars->item);
    scalars->item[scalars->count++] = found;
}

struct expected read_expected(struct line *line, const char *folder, const struct scalars *scalars)
{
    struct expected found = {0};
    found.scalar = scalar_in(line, scalars);
    found.count = number(line, "number of elements");
    found.points = number(line, "number of points");
    found.tolerance = fraction(line, "tolerance");
    char *file = word(line, "file");
    found.data = read_data(folder, file, word(line, "SHA-256"));
    if (found.data.size != 16 * found.points)
        give_up("%s has %zu bytes, its %zu points need %zu", file, found.data.size, found.points,
                16 * found.points);
    return found;
}

struct range read_range(struct line *line)
{
    struct range found = {0};
    char *name = word(line, "kernel"), *at = strchr(name, '@');
    if (at) {
        char *end;
        unsigned long iteration = strtoul(at + 1, &end, 10);
        if (at[1] < '0' || at[1] > '9' || *end || iteration > INT_MAX)
            give_up("plan.txt, line %zu: '%s' is not a valid iteration", line->number, at + 1);
        *at = '\0';
        found.in_loop = 1;
        found.iteration = (int)iteration;
    }
    found.function = copied(name);
    found.dimensions = number(line, "number of dimensions");
    if (found.dimensions < 1 || found.dimensions > 3)
        give_up("plan.txt, line %zu: %s needs 1 to 3 dimensions", line->number, found.function);
    for (size_t i = 0; i < found.dimensions; i++)
        found.global[i] = number(line, "global size");
    for (size_t i = 0; i < found.dimensions; i++)
        found.local[i] = number(line, "local size");
    return found;
}

void free_data(struct data *data)
{
    free(data->file);
    free(data->bytes);
}

void free_scalars(struct scalars *scalars)
{
    for (size_t i = 0; i < scalars->count; i++) {
        free(scalars->item[i]->name);
        free(scalars->item[i]);
    }
    free(scalars->item);
}
