/* What is to be run: the table plan.txt, which liftpy writes from the manifests of the candidates.
 */
#ifndef PLAN_H
#define PLAN_H

#include <stddef.h>

enum { PREPARE = 1, RUN = 2 }; /* the phases; a buffer may be needed in both */

/* A type of numbers: how an element lies in memory, and what unwritten memory is filled with. */
struct scalar {
    char *name;
    size_t size;
    enum { FLOATING, INTEGER, TRUTH } kind;
    unsigned char poison[2][8];
};

/* A file of the bundle, read, and found to be the one that was sent. */
struct data {
    char *file;
    unsigned char *bytes;
    size_t size;
};

/* What one component of the result must be: `points` pairs of an index and a value. */
struct expected {
    const struct scalar *scalar;
    size_t count, points;
    double tolerance; /* relative to the largest value */
    struct data data;
};

struct slot {
    char *name;
    size_t bytes;
};

/* An array on the device. `input` is the file that it is filled from, or -1. */
struct buffer {
    char *name;
    enum { INPUT, CONSTANT, PACKED, TEMPORARY, OUTPUT } role;
    const struct scalar *scalar;
    size_t bytes, slot;
    int phases, overwritten, input;
};

struct launch {
    int phase;
    char *function;
    size_t global[3], local[3];              /* local[0] is 0 where the driver chooses */
    size_t dimensions, arguments, *argument; /* arguments are buffers */
};

/* A candidate; `row` is what the results say of it first, as CSV. */
struct candidate {
    char *id, *row, *file, *sha256;
    size_t allocated;
    size_t extensions, slots, buffers, launches, results;
    char **extension;
    struct slot *slot;
    struct buffer *buffer;
    struct launch *launch;
    size_t *result; /* the buffer of each expected component */
};

struct plan {
    const char *folder;
    char sha256[65];
    char *campaign, *options;
    char *device, *platform; /* that it was made for; NULL where it was made for none */
    size_t warmup, least, most, attempts;
    double enough_ns;
    size_t known, scalars, inputs, components, candidates;
    char **extension; /* the `known` ones: those that some type of numbers needs */
    struct scalar **scalar;
    struct data *input;
    struct expected *expected;
    struct candidate *candidate;
};

/* Reads the plan in a folder, with its inputs and expected values. Ends the program if it is
 * broken. */
struct plan *read_plan(const char *folder);

/* Reads the file of that hash in the folder of a plan. Ends the program if it is another. */
struct data read_data(const struct plan *plan, const char *file, const char *wanted);

void free_plan(struct plan *plan);

#endif
