/* The plan of a network, plan.txt, which liftpy writes: memory, kernels and their order. */
#ifndef NETWORK_H
#define NETWORK_H

#include "device.h"
#include "lines.h"

/* A part of an allocation. A kernel reads it as an image if the bytes of a `texel` are not 0. */
struct place {
    size_t memory, offset, bytes, texel;
};

/* Where the values of an input or a result are: in the arena (`from` is an offset), in an input of
   that number, in the weights (`from` is an offset), or nowhere. */
struct source {
    enum { ARENA, GIVEN, WEIGHTS, NOWHERE } kind;
    size_t from;
};

/* An input or a result. */
struct array {
    char *name;
    const struct scalar *scalar;
    size_t rank, *length, bytes;
    struct source source;
    struct data stored;       /* of an input: its values in a check */
    struct expected expected; /* of a result: its values for these */
};

/* The kernels are built from `program`, and their arguments are places. */
struct launch {
    size_t program, operation;
    struct range range;
    size_t arguments;
    struct place *argument;
};

/* A step before the first run. */
struct step {
    enum { ALLOCATE, UPLOAD, LAUNCH, RELEASE } kind;
    size_t memory, bytes, offset; /* UPLOAD reads the weights from `offset` */
    struct launch launch;
};

struct network {
    const char *folder;
    char *name, *options;
    struct target target;
    struct scalars scalars;
    size_t alignment, arena, memories;
    struct data weights;
    size_t extensions, programs, inputs, outputs, steps, operations, launches;
    char **extension, **operation;
    struct data *program;
    struct array *input, *output;
    struct step *step;
    struct launch *launch;
};

/* Reads the plan in a folder with all files that it names. Exits if it is invalid. */
struct network *read_network(const char *folder);

void free_network(struct network *network);

#endif
