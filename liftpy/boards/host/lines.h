/* Reading plan.txt line by line, and what the plans of all bundles have in common: scalar types,
   files with their hashes, expected values, sizes of launches. All functions exit if the plan is
   invalid. */
#ifndef LINES_H
#define LINES_H

#include <stddef.h>

/* A scalar type: the size of an element in memory, and the fill values of unwritten memory. */
struct scalar {
    char *name;
    size_t size;
    enum { FLOATING, INTEGER, NATURAL, TRUTH } kind;
    unsigned char poison[2][8];
};

struct scalars {
    size_t count;
    struct scalar **item;
};

/* The content of a file of the bundle, verified by its hash. */
struct data {
    char *file;
    unsigned char *bytes;
    size_t size;
};

/* The expected values of one component of the result: `points` pairs of an index and a value. */
struct expected {
    const struct scalar *scalar;
    size_t count, points;
    double tolerance; /* relative to the largest value */
    struct data data;
};

/* A kernel and its NDRange. */
struct range {
    char *function;
    size_t global[3], local[3]; /* local[0] is 0 if the driver chooses */
    size_t dimensions;
    int in_loop, iteration; /* if in_loop, the iteration of the host is the last argument */
};

/* A line that is being read: its number, for messages, and the unread rest. */
struct line {
    size_t number;
    char *rest;
};

/* Goes on to the next line of a text, which is cut there; 0 at its end. `path` is for a message. */
int next_line(struct line *line, char **next, const char *path);

/* Whether the line has more words. */
int is_left(struct line *line);

/* Each reads a word; `what` names it in a message. */
char *word(struct line *line, const char *what);
size_t number(struct line *line, const char *what);
double fraction(struct line *line, const char *what);

/* Reads a word, and returns its position in a list that ends with NULL. */
int one_of(struct line *line, const char *what, const char *const *words);

/* Reads the name of a scalar type. */
const struct scalar *scalar_in(struct line *line, const struct scalars *scalars);

/* Reads `NAME BYTES KIND POISON POISON`, and adds the type. */
void read_scalar(struct line *line, struct scalars *scalars);

/* Reads a file in the folder of a bundle. Exits if its hash is not the wanted one. */
struct data read_data(const char *folder, const char *file, const char *wanted);

/* Reads `TYPE ELEMENTS POINTS TOLERANCE FILE SHA256`. */
struct expected read_expected(struct line *line, const char *folder, const struct scalars *scalars);

/* Reads `KERNEL DIMENSIONS GLOBAL... LOCAL...`; with local 0 the driver chooses the work-group
   size. */
struct range read_range(struct line *line);

void free_data(struct data *data);

void free_scalars(struct scalars *scalars);

#endif
