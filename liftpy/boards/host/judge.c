#include "judge.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static double half(const unsigned char *bytes)
{
    uint16_t bits;
    memcpy(&bits, bytes, sizeof bits);
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                 : ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

static int64_t natural(const struct scalar *scalar, const unsigned char *bytes)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (scalar->size) {
    case 1: memcpy(&one, bytes, 1); return one;
    case 2: memcpy(&two, bytes, 2); return two;
    case 4: memcpy(&four, bytes, 4); return four;
    default: memcpy(&eight, bytes, 8); return (int64_t)eight;
    }
}

/* A whole number; one of 64 bits without a sign as the signed number with the same bits. */
static int64_t whole(const struct scalar *scalar, const unsigned char *bytes)
{
    int8_t one;
    int16_t two;
    int32_t four;
    int64_t eight;
    if (scalar->kind == NATURAL)
        return natural(scalar, bytes);
    switch (scalar->size) {
    case 1: memcpy(&one, bytes, 1); return one;
    case 2: memcpy(&two, bytes, 2); return two;
    case 4: memcpy(&four, bytes, 4); return four;
    default: memcpy(&eight, bytes, 8); return eight;
    }
}

static double real(const struct scalar *scalar, int64_t value)
{
    return scalar->kind == NATURAL ? (double)(uint64_t)value : (double)value;
}

double element(const struct scalar *scalar, const unsigned char *bytes, size_t index)
{
    const unsigned char *at = bytes + index * scalar->size;
    float single;
    double full;
    if (scalar->kind != FLOATING)
        return real(scalar, whole(scalar, at));
    switch (scalar->size) {
    case 2: return half(at);
    case 4: memcpy(&single, at, 4); return (double)single;
    default: memcpy(&full, at, 8); return full;
    }
}

/* Point `k`: returns its index; `value` and `exactly` get the expected value. */
static size_t point(const struct expected *expected, size_t k, double *value, int64_t *exactly)
{
    const unsigned char *at = expected->data.bytes + 16 * k;
    uint64_t index;
    memcpy(&index, at, 8);
    if (expected->scalar->kind == FLOATING) {
        memcpy(value, at + 8, 8);
        *exactly = 0;
    } else {
        memcpy(exactly, at + 8, 8);
        *value = real(expected->scalar, *exactly);
    }
    return (size_t)index;
}

/* The largest finite magnitude of the expected values, or 1. */
static double scale(const struct expected *expected)
{
    double largest = 0, value;
    int64_t exactly;
    for (size_t k = 0; k < expected->points; k++) {
        point(expected, k, &value, &exactly);
        if (isfinite(value) && fabs(value) > largest)
            largest = fabs(value);
    }
    return largest > 0 ? largest : 1;
}

/* The difference of two unequal numbers; for integers at least 1, because i64 are rounded here. */
static double apart(const struct scalar *scalar, double one, double other)
{
    if (scalar->kind == FLOATING) {
        if (one == other || (isnan(one) && isnan(other)))
            return 0;
        return isnan(one - other) ? INFINITY : fabs(one - other);
    }
    return fmax(fabs(one - other), 1);
}

static void note(struct verdict *worst, double error, size_t where, double wanted, double got)
{
    worst->squares += error * error;
    if (error <= worst->error)
        return;
    *worst = (struct verdict){error, 0, where, wanted, got, worst->squares};
}

struct verdict judged(const struct expected *expected, const unsigned char *result)
{
    const struct scalar *scalar = expected->scalar;
    struct verdict worst = {0};
    double unit = scale(expected), value;
    for (size_t k = 0; k < expected->points; k++) {
        int64_t exactly;
        size_t index = point(expected, k, &value, &exactly);
        if (scalar->kind != FLOATING && whole(scalar, result + index * scalar->size) == exactly)
            continue;
        double got = element(scalar, result, index);
        note(&worst, apart(scalar, got, value) / unit, index, value, got);
    }
    worst.wrong = worst.error > expected->tolerance;
    return worst;
}

struct verdict compared(const struct expected *expected, const unsigned char *one,
                        const unsigned char *other)
{
    const struct scalar *scalar = expected->scalar;
    struct verdict worst = {0};
    double unit = scale(expected);
    for (size_t i = 0; i < expected->count; i++) {
        if (!memcmp(one + i * scalar->size, other + i * scalar->size, scalar->size))
            continue;
        double a = element(scalar, one, i), b = element(scalar, other, i);
        note(&worst, apart(scalar, a, b) / unit, i, a, b);
    }
    worst.wrong = worst.error > 2 * expected->tolerance;
    return worst;
}
