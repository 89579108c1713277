/* The plan of a bundle, plan.txt, which liftpy writes from the manifests of the candidates. */
#ifndef PLAN_H
#define PLAN_H

#include <stddef.h>

#include "device.h"
#include "lines.h"

enum { PREPARE = 1, RUN = 2 }; /* the phases, as bits: a buffer may be needed in both */

struct slot {
    char *name;
    size_t bytes;
};

/* An array on the device. `input` is the number of the input that it is filled from, or -1. */
struct buffer {
    char *name;
    enum { INPUT, CONSTANT, PACKED, TEMPORARY, OUTPUT } role;
    const struct scalar *scalar;
    size_t bytes, slot;
    int phases, overwritten, input;
};

struct launch {
    int phase;
    struct range range;
    size_t arguments, *argument; /* arguments are buffers */
    size_t *texel;               /* the bytes of a texel of an argument's image; 0: the buffer */
};

/* Build options for devices with an extension and at least a major version of OpenCL. */
struct optional {
    char *extension, *options;
    size_t version;
};

/* A candidate; `row` has the first columns of its row in the results, as CSV. */
struct candidate {
    char *id, *row, *file, *sha256;
    size_t allocated;
    size_t extensions, optionals, slots, buffers, launches, results;
    char **extension;
    struct optional *optional; /* the first that fits the device is used */
    struct slot *slot;
    struct buffer *buffer;
    struct launch *launch;
    size_t *result; /* the buffer of each expected component */
};

struct plan {
    const char *folder;
    char sha256[65];
    char *campaign, *options;
    struct target target;
    size_t warmup, least, most, attempts;
    double enough_ns;
    size_t known, inputs, components, candidates;
    char **extension; /* the `known` extensions: those that kernels may use */
    struct scalars scalars;
    struct data *input;
    struct expected *expected;
    struct candidate *candidate;
    struct candidate *reference; /* the fixed kernel of reference.h; NULL if the plan has none */
    size_t looks;                /* the runs of which the shortest counts */
    double warm_ns, longest_ns;
    size_t slow_repeats; /* the fewest runs of a slow candidate; 0 if the plan has no such rule */
    double slow, slow_ns, first_ns, far, best_ns;
};

/* Reads the plan in a folder, with its inputs and expected values. Exits if it is invalid. */
struct plan *read_plan(const char *folder);

void free_plan(struct plan *plan);

#endif
