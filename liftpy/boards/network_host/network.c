#include "network.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

static void check_inside(struct line *line, size_t offset, size_t bytes, size_t whole)
{
    if (offset > whole || bytes > whole - offset)
        give_up("plan.txt, line %zu: %zu bytes from %zu are outside of %zu bytes", line->number,
                bytes, offset, whole);
}

/* Reads `arena OFFSET`, `input NUMBER`, `weights OFFSET` or `none`. */
static struct source read_source(struct line *line, const struct network *network, size_t bytes)
{
    static const char *const KINDS[] = {"arena", "input", "weights", "none", NULL};
    struct source source = {0};
    source.kind = one_of(line, "place", KINDS);
    if (source.kind != NOWHERE)
        source.from = number(line, "place");
    if (source.kind == GIVEN
        && (source.from >= network->inputs || network->input[source.from].bytes != bytes))
        give_up("plan.txt, line %zu: input %zu does not have %zu bytes", line->number, source.from,
                bytes);
    if (source.kind == ARENA)
        check_inside(line, source.from, bytes, network->arena);
    if (source.kind == WEIGHTS)
        check_inside(line, source.from, bytes, network->weights.size);
    return source;
}

/* Reads `NAME TYPE RANK LENGTH... SOURCE`. */
static struct array read_array(struct line *line, const struct network *network)
{
    struct array found = {0};
    found.name = copied(word(line, "name"));
    found.scalar = scalar_in(line, &network->scalars);
    found.bytes = found.scalar->size;
    found.rank = number(line, "number of dimensions");
    for (size_t i = 0; i < found.rank; i++) {
        found.length = one_more(found.length, i, sizeof *found.length);
        found.length[i] = number(line, "length");
        if (found.length[i] && found.bytes > (size_t)-1 / found.length[i])
            give_up("plan.txt, line %zu: %s is too large", line->number, found.name);
        found.bytes *= found.length[i];
    }
    found.source = read_source(line, network, found.bytes);
    return found;
}

/* Reads `input NAME TYPE RANK LENGTH... SOURCE FILE SHA256`. */
static void read_input(struct network *network, struct line *line)
{
    struct array found = read_array(line, network);
    char *file = word(line, "file");
    found.stored = read_data(network->folder, file, word(line, "SHA-256"));
    if (found.stored.size != found.bytes)
        give_up("%s has %zu bytes, and %s needs %zu", file, found.stored.size, found.name,
                found.bytes);
    network->input = one_more(network->input, network->inputs, sizeof *network->input);
    network->input[network->inputs++] = found;
}

/* Reads `output NAME TYPE RANK LENGTH... SOURCE` and, as the rest, expected values. */
static void read_output(struct network *network, struct line *line)
{
    struct array found = read_array(line, network);
    found.expected = read_expected(line, network->folder, &network->scalars);
    if (found.expected.scalar != found.scalar
        || found.expected.count != found.bytes / found.scalar->size)
        give_up("plan.txt, line %zu: %s has expected values of another array", line->number,
                found.name);
    network->output = one_more(network->output, network->outputs, sizeof *network->output);
    network->output[network->outputs++] = found;
}

/* Reads `PROGRAM KERNEL DIMENSIONS GLOBAL... LOCAL...`, and for each argument
   `MEMORY OFFSET BYTES TEXEL`: the bytes of a texel if it is passed as an image, otherwise 0. */
static struct launch read_launch(struct line *line, const struct network *network,
                                 const size_t *sizes)
{
    struct launch found = {0};
    found.program = number(line, "number of a program");
    if (found.program >= network->programs)
        give_up("plan.txt, line %zu: there is no program %zu", line->number, found.program);
    found.range = read_range(line);
    while (is_left(line)) {
        found.argument = one_more(found.argument, found.arguments, sizeof *found.argument);
        struct place *place = &found.argument[found.arguments++];
        place->memory = number(line, "number of an allocation");
        if (place->memory >= network->memories || !sizes[place->memory])
            give_up("plan.txt, line %zu: there is no allocation %zu", line->number, place->memory);
        place->offset = number(line, "offset");
        place->bytes = number(line, "size");
        check_inside(line, place->offset, place->bytes, sizes[place->memory]);
        place->texel = number(line, "size of a texel");
        if (place->texel && place->texel != 8 && place->texel != 16)
            give_up("plan.txt, line %zu: texels of %zu bytes", line->number, place->texel);
    }
    return found;
}

/* Reads a step before the first run: `allocate BYTES`, `upload MEMORY OFFSET`, `pack LAUNCH` or
   `release MEMORY`. An allocation that is released, or not yet made, has the size 0 in `sizes`. */
static void read_step(struct network *network, int kind, struct line *line, size_t **sizes)
{
    struct step found = {0};
    found.kind = kind;
    if (kind == LAUNCH) {
        found.launch = read_launch(line, network, *sizes);
    } else if (kind == ALLOCATE) {
        *sizes = one_more(*sizes, network->memories, sizeof **sizes);
        found.memory = network->memories++;
        found.bytes = (*sizes)[found.memory] = number(line, "number of bytes");
    } else {
        found.memory = number(line, "number of an allocation");
        if (found.memory >= network->memories || !(*sizes)[found.memory])
            give_up("plan.txt, line %zu: there is no allocation %zu", line->number, found.memory);
        found.bytes = (*sizes)[found.memory];
        if (kind == UPLOAD) {
            found.offset = number(line, "offset");
            check_inside(line, found.offset, found.bytes, network->weights.size);
        } else {
            (*sizes)[found.memory] = 0;
        }
    }
    network->step = one_more(network->step, network->steps, sizeof *network->step);
    network->step[network->steps++] = found;
}

static char **one_more_word(char **words, size_t *count, const char *text)
{
    words = one_more(words, *count, sizeof *words);
    words[(*count)++] = copied(text);
    return words;
}

static void read_line(struct network *network, const char *key, struct line *line, size_t **sizes)
{
    static const char *const STEPS[] = {"allocate", "upload", "pack", "release"};
    for (int kind = ALLOCATE; kind <= RELEASE; kind++) {
        if (!strcmp(key, STEPS[kind])) {
            read_step(network, kind, line, sizes);
            return;
        }
    }
    if (!strcmp(key, "name")) {
        network->name = copied(line->rest);
    } else if (!strcmp(key, "device")) {
        network->target.device = copied(line->rest);
    } else if (!strcmp(key, "platform")) {
        network->target.platform = copied(line->rest);
    } else if (!strcmp(key, "options")) {
        network->options = copied(line->rest);
    } else if (!strcmp(key, "arena")) {
        network->arena = number(line, "number of bytes");
        network->alignment = number(line, "alignment");
    } else if (!strcmp(key, "weights")) {
        char *file = word(line, "file");
        network->weights = read_data(network->folder, file, word(line, "SHA-256"));
    } else if (!strcmp(key, "extension")) {
        network->extension =
            one_more_word(network->extension, &network->extensions, word(line, "name"));
    } else if (!strcmp(key, "scalar")) {
        read_scalar(line, &network->scalars);
    } else if (!strcmp(key, "program")) {
        char *file = word(line, "file");
        network->program = one_more(network->program, network->programs, sizeof *network->program);
        network->program[network->programs++] =
            read_data(network->folder, file, word(line, "SHA-256"));
    } else if (!strcmp(key, "input")) {
        read_input(network, line);
    } else if (!strcmp(key, "output")) {
        read_output(network, line);
    } else if (!strcmp(key, "operation")) {
        network->operation = one_more_word(network->operation, &network->operations, line->rest);
    } else if (!strcmp(key, "launch") && network->operations) {
        struct launch launch = read_launch(line, network, *sizes);
        launch.operation = network->operations - 1;
        network->launch = one_more(network->launch, network->launches, sizeof *network->launch);
        network->launch[network->launches++] = launch;
    } else {
        give_up("plan.txt, line %zu: unexpected keyword '%s'", line->number, key);
    }
}

struct network *read_network(const char *folder)
{
    size_t size, *sizes = NULL;
    int ended = 0;
    char *path = path_in(folder, "plan.txt");
    unsigned char *bytes = read_file(path, &size);
    struct network *network = room_for(1, sizeof *network);
    if (!bytes)
        give_up("%s cannot be read: name the folder of a bundle with --bundle", path);
    network->folder = folder;
    struct line line = {0, NULL};
    for (char *next = (char *)bytes; next_line(&line, &next, path);) {
        char *key = word(&line, "word");
        if (line.number == 1) {
            if (strcmp(key, "liftpy-network") || number(&line, "version") != 3)
                give_up("%s is not a plan of this version of network, which reads 3", path);
        } else if (!strcmp(key, "end")) {
            ended = 1;
        } else {
            read_line(network, key, &line, &sizes);
        }
    }
    if (!ended || !network->name || !network->options || !network->alignment || !network->outputs)
        give_up("%s is incomplete: copy the bundle again", path);
    if (network->arena && (!network->memories || sizes[0] != network->arena))
        give_up("%s does not begin with the arena: export the network again", path);
    free(sizes);
    free(bytes);
    free(path);
    return network;
}

static void free_launch(struct launch *launch)
{
    free(launch->range.function);
    free(launch->argument);
}

static void free_arrays(struct array *array, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(array[i].name);
        free(array[i].length);
        free_data(&array[i].stored);
        free_data(&array[i].expected.data);
    }
    free(array);
}

void free_network(struct network *network)
{
    for (size_t i = 0; i < network->steps; i++)
        free_launch(&network->step[i].launch);
    for (size_t i = 0; i < network->launches; i++)
        free_launch(&network->launch[i]);
    for (size_t i = 0; i < network->programs; i++)
        free_data(&network->program[i]);
    for (size_t i = 0; i < network->extensions; i++)
        free(network->extension[i]);
    for (size_t i = 0; i < network->operations; i++)
        free(network->operation[i]);
    free_arrays(network->input, network->inputs);
    free_arrays(network->output, network->outputs);
    free_data(&network->weights);
    free_scalars(&network->scalars);
    void *const parts[] = {network->name,    network->options,   network->target.device,
                           network->step,    network->extension, network->target.platform,
                           network->program, network->operation, network->launch, network};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
}
