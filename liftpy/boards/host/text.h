/* Allocation that exits on failure, growing texts, and reading files. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

#ifdef __GNUC__
#define PRINTS(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTS(text, first)
#endif

/* A text of `length` bytes, followed by a 0. {0} is the empty text. */
struct text {
    char *bytes;
    size_t length, room;
};

/* The name of the program, which its messages begin with; main.c or board.c defines it. */
extern const char program_name[];

/* Prints an error message, and exits with code 1. */
void give_up(const char *format, ...) PRINTS(1, 2);

/* Allocates `count` zeroed elements. */
void *room_for(size_t count, size_t size);

/* Grows an array of `count` elements by one zeroed element. */
void *one_more(void *array, size_t count, size_t size);

/* A copy of a text. */
char *copied(const char *text);

/* Adds to a text, as printf would. */
void add(struct text *text, const char *format, ...) PRINTS(2, 3);

/* Adds a CSV field in quotes, on one line: a line break becomes \n, a backslash is doubled. */
void add_field(struct text *text, const char *value);

/* Adds a JSON string. */
void add_json(struct text *text, const char *value);

/* Empties a text and frees it. */
void drop(struct text *text);

/* The bytes of a file, followed by a 0; to be freed. NULL if it cannot be read. */
unsigned char *read_file(const char *path, size_t *size);

/* "FOLDER/NAME", to be freed. */
char *path_in(const char *folder, const char *name);

#endif
