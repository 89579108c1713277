#include "plan.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"
#include "text.h"

static const char *const BLANK = " \t\r";

/* A line that is being parsed: its number, for messages, and the unread rest. */
struct line {
    size_t number;
    char *rest;
};

static char *word(struct line *line, const char *what)
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

static int is_left(struct line *line)
{
    line->rest += strspn(line->rest, BLANK);
    return *line->rest != 0;
}

static size_t number(struct line *line, const char *what)
{
    char *text = word(line, what), *end;
    unsigned long long found = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || found > SIZE_MAX)
        give_up("plan.txt, line %zu: %s is not a valid %s", line->number, text, what);
    return (size_t)found;
}

static double fraction(struct line *line, const char *what)
{
    char *text = word(line, what), *end;
    double found = strtod(text, &end);
    if (*end)
        give_up("plan.txt, line %zu: %s is not a valid %s", line->number, text, what);
    return found;
}

/* Reads a word, and returns its position in a list that ends with NULL. */
static int one_of(struct line *line, const char *what, const char *const *words)
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

static const struct scalar *scalar(struct line *line, const struct plan *plan)
{
    char *name = word(line, "type of numbers");
    for (size_t i = 0; i < plan->scalars; i++)
        if (!strcmp(plan->scalar[i]->name, name))
            return plan->scalar[i];
    give_up("plan.txt, line %zu: %s is not a scalar type", line->number, name);
    return NULL;
}

static size_t buffer_of(struct line *line, const struct candidate *candidate)
{
    char *name = word(line, "buffer");
    for (size_t i = 0; i < candidate->buffers; i++)
        if (!strcmp(candidate->buffer[i].name, name))
            return i;
    give_up("plan.txt, line %zu: %s is not a buffer of %s", line->number, name, candidate->id);
    return 0;
}

struct data read_data(const struct plan *plan, const char *file, const char *wanted)
{
    char found[65], *path = path_in(plan->folder, file);
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

/* Reads the line `input FILE SHA256`. */
static void read_input(struct plan *plan, struct line *line)
{
    char *file = word(line, "file");
    plan->input = one_more(plan->input, plan->inputs, sizeof *plan->input);
    plan->input[plan->inputs++] = read_data(plan, file, word(line, "SHA-256"));
}

/* Reads `scalar NAME BYTES KIND POISON POISON`. */
static void read_scalar(struct plan *plan, struct line *line)
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
    plan->scalar = one_more(plan->scalar, plan->scalars, sizeof *plan->scalar);
    plan->scalar[plan->scalars++] = found;
}

/* Reads `expected TYPE ELEMENTS POINTS TOLERANCE FILE SHA256`. */
static void read_expected(struct plan *plan, struct line *line)
{
    plan->expected = one_more(plan->expected, plan->components, sizeof *plan->expected);
    struct expected *found = &plan->expected[plan->components++];
    found->scalar = scalar(line, plan);
    found->count = number(line, "number of elements");
    found->points = number(line, "number of points");
    found->tolerance = fraction(line, "tolerance");
    char *file = word(line, "file");
    found->data = read_data(plan, file, word(line, "SHA-256"));
    if (found->data.size != 16 * found->points)
        give_up("%s has %zu bytes, its %zu points need %zu", file, found->data.size, found->points,
                16 * found->points);
}

/* Reads `buffer NAME ROLE TYPE BYTES SLOT PHASES OVERWRITTEN INPUT`. */
static void read_buffer(struct plan *plan, struct candidate *candidate, struct line *line)
{
    static const char *const ROLES[] = {"input", "constant", "packed", "temporary", "output", NULL};
    static const char *const PHASES[] = {"none", "prepare", "run", "both", NULL};
    static const char *const STATES[] = {"kept", "overwritten", NULL};
    candidate->buffer = one_more(candidate->buffer, candidate->buffers, sizeof *candidate->buffer);
    struct buffer *found = &candidate->buffer[candidate->buffers++];
    found->name = copied(word(line, "name"));
    found->role = one_of(line, "role", ROLES);
    found->scalar = scalar(line, plan);
    found->bytes = number(line, "size");
    char *slot = word(line, "slot");
    while (found->slot < candidate->slots && strcmp(candidate->slot[found->slot].name, slot))
        found->slot++;
    if (found->slot == candidate->slots || candidate->slot[found->slot].bytes < found->bytes)
        give_up("plan.txt, line %zu: %s does not fit into slot %s", line->number, found->name,
                slot);
    found->phases = one_of(line, "phase", PHASES);
    found->overwritten = one_of(line, "state", STATES);
    found->input = -1;
    if (found->role == INPUT || found->role == CONSTANT) {
        size_t input = number(line, "input");
        if (input >= plan->inputs || plan->input[input].size != found->bytes)
            give_up("plan.txt, line %zu: input %zu does not have %zu bytes", line->number, input,
                    found->bytes);
        found->input = (int)input;
    }
}

/* Reads `launch PHASE KERNEL DIMENSIONS GLOBAL... LOCAL... BUFFER...`; with local 0 the driver
 * chooses the work-group size. */
static void read_launch(struct candidate *candidate, struct line *line)
{
    static const char *const PHASES[] = {"", "prepare", "run", NULL};
    candidate->launch = one_more(candidate->launch, candidate->launches, sizeof *candidate->launch);
    struct launch *found = &candidate->launch[candidate->launches++];
    found->phase = one_of(line, "phase", PHASES);
    found->function = copied(word(line, "kernel"));
    found->dimensions = number(line, "number of dimensions");
    if (found->dimensions < 1 || found->dimensions > 3)
        give_up("plan.txt, line %zu: %s needs 1 to 3 dimensions", line->number, found->function);
    for (size_t i = 0; i < found->dimensions; i++)
        found->global[i] = number(line, "global size");
    for (size_t i = 0; i < found->dimensions; i++)
        found->local[i] = number(line, "local size");
    while (is_left(line)) {
        found->argument = one_more(found->argument, found->arguments, sizeof *found->argument);
        found->argument[found->arguments++] = buffer_of(line, candidate);
    }
}

/* Reads a line between `candidate ID FILE SHA256` or `reference ...` and `end`. */
static void read_part(struct plan *plan, struct candidate *candidate, const char *key,
                      struct line *line)
{
    if (!strcmp(key, "row")) {
        candidate->row = copied(line->rest);
    } else if (!strcmp(key, "allocated")) {
        candidate->allocated = number(line, "number of bytes");
    } else if (!strcmp(key, "extension")) {
        candidate->extension =
            one_more(candidate->extension, candidate->extensions, sizeof *candidate->extension);
        candidate->extension[candidate->extensions++] = copied(word(line, "name"));
    } else if (!strcmp(key, "slot")) {
        candidate->slot = one_more(candidate->slot, candidate->slots, sizeof *candidate->slot);
        struct slot *slot = &candidate->slot[candidate->slots++];
        slot->name = copied(word(line, "name"));
        slot->bytes = number(line, "size");
    } else if (!strcmp(key, "buffer")) {
        read_buffer(plan, candidate, line);
    } else if (!strcmp(key, "launch")) {
        read_launch(candidate, line);
    } else if (!strcmp(key, "result")) {
        candidate->result = room_for(plan->components, sizeof *candidate->result);
        while (is_left(line) && candidate->results < plan->components) {
            const struct expected *expected = &plan->expected[candidate->results];
            size_t buffer = buffer_of(line, candidate);
            if (candidate->buffer[buffer].bytes < expected->count * expected->scalar->size)
                give_up("plan.txt, line %zu: a buffer of the result is too small", line->number);
            candidate->result[candidate->results++] = buffer;
        }
        if (is_left(line) || candidate->results < plan->components)
            give_up("plan.txt, line %zu: the result must have %zu components", line->number,
                    plan->components);
    } else {
        give_up("plan.txt, line %zu: unknown keyword '%s'", line->number, key);
    }
}

/* Reads a line that does not belong to a candidate. */
static void read_whole(struct plan *plan, const char *key, struct line *line)
{
    if (!strcmp(key, "campaign")) {
        plan->campaign = copied(line->rest);
    } else if (!strcmp(key, "device")) {
        plan->device = copied(line->rest);
    } else if (!strcmp(key, "platform")) {
        plan->platform = copied(line->rest);
    } else if (!strcmp(key, "options")) {
        plan->options = copied(line->rest);
    } else if (!strcmp(key, "timing")) {
        plan->warmup = number(line, "number of runs");
        plan->least = number(line, "number of runs");
        plan->most = number(line, "number of runs");
        plan->enough_ns = fraction(line, "number of nanoseconds");
    } else if (!strcmp(key, "slow")) {
        plan->slow = fraction(line, "factor");
        plan->slow_repeats = number(line, "number of runs");
        plan->slow_ns = fraction(line, "number of nanoseconds");
        plan->first_ns = fraction(line, "number of nanoseconds");
        plan->far = fraction(line, "factor");
        plan->best_ns = fraction(line, "number of nanoseconds");
    } else if (!strcmp(key, "attempts")) {
        plan->attempts = number(line, "number");
    } else if (!strcmp(key, "extension")) {
        plan->extension = one_more(plan->extension, plan->known, sizeof *plan->extension);
        plan->extension[plan->known++] = copied(word(line, "name"));
    } else if (!strcmp(key, "scalar")) {
        read_scalar(plan, line);
    } else if (!strcmp(key, "input")) {
        read_input(plan, line);
    } else if (!strcmp(key, "expected")) {
        read_expected(plan, line);
    } else {
        give_up("plan.txt, line %zu: unknown keyword '%s'", line->number, key);
    }
}

static struct candidate *begin_candidate(struct plan *plan, struct line *line)
{
    plan->candidate = one_more(plan->candidate, plan->candidates, sizeof *plan->candidate);
    struct candidate *candidate = &plan->candidate[plan->candidates++];
    candidate->id = copied(word(line, "id"));
    candidate->file = copied(word(line, "file"));
    candidate->sha256 = copied(word(line, "SHA-256"));
    return candidate;
}

/* Reads `reference FILE SHA256 LOOKS WARM_NS LONGEST_NS`. */
static struct candidate *begin_reference(struct plan *plan, struct line *line)
{
    if (plan->reference)
        give_up("plan.txt, line %zu: a second reference kernel", line->number);
    plan->reference = room_for(1, sizeof *plan->reference);
    plan->reference->id = copied("reference");
    plan->reference->file = copied(word(line, "file"));
    plan->reference->sha256 = copied(word(line, "SHA-256"));
    plan->looks = number(line, "number of runs");
    plan->warm_ns = fraction(line, "number of nanoseconds");
    plan->longest_ns = fraction(line, "number of nanoseconds");
    return plan->reference;
}

struct plan *read_plan(const char *folder)
{
    size_t size;
    char *path = path_in(folder, "plan.txt");
    unsigned char *bytes = read_file(path, &size);
    struct plan *plan = room_for(1, sizeof *plan);
    if (!bytes)
        give_up("%s cannot be read: name the folder of a bundle with --bundle", path);
    plan->folder = folder;
    sha256(bytes, size, plan->sha256);
    struct candidate *within = NULL;
    struct line line = {0, NULL};
    for (char *next = (char *)bytes; *next;) {
        char *end = strchr(next, '\n');
        if (!end)
            give_up("%s ends within line %zu: copy the bundle again", path, line.number + 1);
        *end = 0;
        line.number++;
        line.rest = next;
        next = end + 1;
        char *key = word(&line, "word");
        if (line.number == 1) {
            if (strcmp(key, "liftpy-plan") || number(&line, "version") - 1 > 1)
                give_up("%s is not a plan of this version of board, which reads 1 and 2", path);
        } else if (!strcmp(key, "candidate") && !within) {
            within = begin_candidate(plan, &line);
        } else if (!strcmp(key, "reference") && !within) {
            within = begin_reference(plan, &line);
        } else if (!strcmp(key, "end") && within) {
            within = NULL;
        } else if (within) {
            read_part(plan, within, key, &line);
        } else {
            read_whole(plan, key, &line);
        }
    }
    if (within || !plan->candidates || !plan->campaign || !plan->options || !plan->most)
        give_up("%s is incomplete: copy the bundle again", path);
    free(bytes);
    free(path);
    return plan;
}

static void free_candidate(struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->extensions; i++)
        free(candidate->extension[i]);
    for (size_t i = 0; i < candidate->slots; i++)
        free(candidate->slot[i].name);
    for (size_t i = 0; i < candidate->buffers; i++)
        free(candidate->buffer[i].name);
    for (size_t i = 0; i < candidate->launches; i++) {
        free(candidate->launch[i].function);
        free(candidate->launch[i].argument);
    }
    void *const parts[] = {candidate->id,        candidate->row,    candidate->file,
                           candidate->sha256,    candidate->slot,   candidate->buffer,
                           candidate->extension, candidate->launch, candidate->result};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
}

void free_plan(struct plan *plan)
{
    for (size_t i = 0; i < plan->candidates; i++)
        free_candidate(&plan->candidate[i]);
    if (plan->reference)
        free_candidate(plan->reference);
    free(plan->reference);
    for (size_t i = 0; i < plan->known; i++)
        free(plan->extension[i]);
    for (size_t i = 0; i < plan->scalars; i++) {
        free(plan->scalar[i]->name);
        free(plan->scalar[i]);
    }
    for (size_t i = 0; i < plan->inputs; i++) {
        free(plan->input[i].file);
        free(plan->input[i].bytes);
    }
    for (size_t i = 0; i < plan->components; i++) {
        free(plan->expected[i].data.file);
        free(plan->expected[i].data.bytes);
    }
    void *const parts[] = {plan->campaign, plan->options, plan->device,   plan->platform,
                           plan->extension, plan->scalar, plan->input,    plan->expected,
                           plan->candidate, plan};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
}
