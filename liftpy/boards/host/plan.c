#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "sha256.h"
#include "text.h"

static size_t buffer_of(struct line *line, const struct candidate *candidate, const char *name)
{
    for (size_t i = 0; i < candidate->buffers; i++)
        if (!strcmp(candidate->buffer[i].name, name))
            return i;
    give_up("plan.txt, line %zu: %s is not a buffer of %s", line->number, name, candidate->id);
    return 0;
}

/* Reads the line `input FILE SHA256`. */
static void read_input(struct plan *plan, struct line *line)
{
    char *file = word(line, "file");
    plan->input = one_more(plan->input, plan->inputs, sizeof *plan->input);
    plan->input[plan->inputs++] = read_data(plan->folder, file, word(line, "SHA-256"));
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
    found->scalar = scalar_in(line, &plan->scalars);
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

/* The bytes of a texel, if a word ends in `@BYTES`, which is cut off; otherwise 0. */
static size_t texel_of(struct line *line, char *word)
{
    char *at = strchr(word, '@');
    if (!at)
        return 0;
    *at = '\0';
    if (strcmp(at + 1, "8") && strcmp(at + 1, "16"))
        give_up("plan.txt, line %zu: texels of '%s' bytes", line->number, at + 1);
    return at[1] == '8' ? 8 : 16;
}

/* Reads `launch PHASE KERNEL DIMENSIONS GLOBAL... LOCAL... BUFFER...`. A buffer that is passed as
   an image is followed by `@` and the bytes of a texel. */
static void read_launch(struct candidate *candidate, struct line *line)
{
    static const char *const PHASES[] = {"", "prepare", "run", NULL};
    candidate->launch = one_more(candidate->launch, candidate->launches, sizeof *candidate->launch);
    struct launch *found = &candidate->launch[candidate->launches++];
    found->phase = one_of(line, "phase", PHASES);
    found->range = read_range(line);
    while (is_left(line)) {
        char *name = word(line, "buffer");
        found->argument = one_more(found->argument, found->arguments, sizeof *found->argument);
        found->texel = one_more(found->texel, found->arguments, sizeof *found->texel);
        found->texel[found->arguments] = texel_of(line, name);
        found->argument[found->arguments++] = buffer_of(line, candidate, name);
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
    } else if (!strcmp(key, "optional")) {
        candidate->optional =
            one_more(candidate->optional, candidate->optionals, sizeof *candidate->optional);
        struct optional *found = &candidate->optional[candidate->optionals++];
        found->extension = copied(word(line, "name"));
        found->version = number(line, "version");
        found->options = copied(line->rest);
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
            size_t buffer = buffer_of(line, candidate, word(line, "buffer"));
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
        plan->target.device = copied(line->rest);
    } else if (!strcmp(key, "platform")) {
        plan->target.platform = copied(line->rest);
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
        read_scalar(line, &plan->scalars);
    } else if (!strcmp(key, "input")) {
        read_input(plan, line);
    } else if (!strcmp(key, "expected")) {
        plan->expected = one_more(plan->expected, plan->components, sizeof *plan->expected);
        plan->expected[plan->components++] = read_expected(line, plan->folder, &plan->scalars);
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
    for (char *next = (char *)bytes; next_line(&line, &next, path);) {
        char *key = word(&line, "word");
        if (line.number == 1) {
            if (strcmp(key, "liftpy-plan") || number(&line, "version") - 1 > 5)
                give_up("%s is not a plan of this version of board, which reads 1 to 6", path);
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
    for (size_t i = 0; i < candidate->optionals; i++) {
        free(candidate->optional[i].extension);
        free(candidate->optional[i].options);
    }
    for (size_t i = 0; i < candidate->slots; i++)
        free(candidate->slot[i].name);
    for (size_t i = 0; i < candidate->buffers; i++)
        free(candidate->buffer[i].name);
    for (size_t i = 0; i < candidate->launches; i++) {
        free(candidate->launch[i].range.function);
        free(candidate->launch[i].argument);
        free(candidate->launch[i].texel);
    }
    void *const parts[] = {candidate->id,       candidate->row,       candidate->file,
                           candidate->sha256,   candidate->slot,      candidate->buffer,
                           candidate->optional, candidate->extension, candidate->launch,
                           candidate->result};
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
    for (size_t i = 0; i < plan->inputs; i++)
        free_data(&plan->input[i]);
    for (size_t i = 0; i < plan->components; i++)
        free_data(&plan->expected[i].data);
    free_scalars(&plan->scalars);
    void *const parts[] = {plan->campaign,        plan->options,   plan->target.device,
                           plan->target.platform, plan->extension, plan->input,
                           plan->expected,        plan->candidate, plan};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
}
