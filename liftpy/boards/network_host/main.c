/* Runs a network on an OpenCL device. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "device.h"
#include "judge.h"
#include "network.h"
#include "npy.h"
#include "resident.h"
#include "text.h"

const char program_name[] = "network";

static const char HELP[] =
    "network [OPTION ...]\n"
    "  --input NAME=FILE  the values of an input: a .npy file, or a file of the bytes alone in C\n"
    "                     order, little-endian; may be repeated. Other inputs have stored values\n"
    "  --output DIR       write each result as DIR/NAME.npy\n"
    "  --check            run on the stored inputs, each time with the memory filled with another\n"
    "                     value, and compare the results with the stored ones; exit with 1 if\n"
    "                     they differ\n"
    "  --repeats N        print the median time of each operation in N runs after a warm-up run\n"
    "  --device D         number or part of the name of a device; by default the one that the\n"
    "                     plan was made for\n"
    "  --library FILE     the OpenCL library; by default the system's\n"
    "  --list             list the devices and exit\n"
    "  --bundle DIR       the folder of plan.txt; by default .\n";

/* What the arena is filled with before the runs of a check: NaN, and very large numbers of both
   signs in every type of floats. The minimum of a number and NaN is the number. */
static const unsigned char FILLS[] = {0xFF, 0x7B, 0xFB};

struct options {
    const char *bundle, *device, *library, *output;
    const char **input;
    size_t inputs, repeats;
    int list, check;
};

static void usage(const char *format, const char *what)
{
    fputs("network: ", stderr);
    fprintf(stderr, format, what);
    fprintf(stderr, "\n%s", HELP);
    exit(2);
}

static size_t natural(const char *option, const char *text)
{
    char *end;
    unsigned long found = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end)
        usage("%s needs a whole number", option);
    return found;
}

static struct options read_options(int count, char **words)
{
    struct options options = {".", NULL, NULL, NULL, NULL, 0, 0, 0, 0};
    for (int i = 1; i < count; i++) {
        const char *name = words[i];
        if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
            fputs(HELP, stdout);
            exit(0);
        }
        if (!strcmp(name, "--list")) {
            options.list = 1;
            continue;
        }
        if (!strcmp(name, "--check")) {
            options.check = 1;
            continue;
        }
        const char *value = i + 1 < count ? words[++i] : NULL;
        if (!value)
            usage("%s is not an option, or lacks its value", name);
        if (!strcmp(name, "--device")) {
            options.device = value;
        } else if (!strcmp(name, "--bundle")) {
            options.bundle = value;
        } else if (!strcmp(name, "--library")) {
            options.library = value;
        } else if (!strcmp(name, "--output")) {
            options.output = value;
        } else if (!strcmp(name, "--repeats")) {
            options.repeats = natural(name, value);
        } else if (!strcmp(name, "--input")) {
            options.input = one_more(options.input, options.inputs, sizeof *options.input);
            options.input[options.inputs++] = value;
        } else {
            usage("%s is not an option", name);
        }
    }
    if (options.check && options.inputs)
        usage("%s uses the stored inputs: it cannot be combined with --input", "--check");
    return options;
}

/* The number of the input that NAME=FILE names; `file` gets the file. */
static size_t input_of(const struct network *network, const char *option, const char **file)
{
    const char *sign = strchr(option, '=');
    if (!sign)
        usage("--input needs NAME=FILE, not %s", option);
    *file = sign + 1;
    for (size_t i = 0; i < network->inputs; i++)
        if (strlen(network->input[i].name) == (size_t)(sign - option)
            && !strncmp(network->input[i].name, option, (size_t)(sign - option)))
            return i;
    struct text names = {0};
    for (size_t i = 0; i < network->inputs; i++)
        add(&names, "%s%s", i ? ", " : "", network->input[i].name);
    give_up("%s has no input %.*s\nits inputs are: %s", network->name, (int)(sign - option), option,
            names.bytes ? names.bytes : "none");
    return 0;
}

/* --- reports --- */

static int smaller(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The median; sorts the numbers. */
static double median(double *number, size_t count)
{
    qsort(number, count, sizeof *number, smaller);
    return (number[(count - 1) / 2] + number[count / 2]) / 2;
}

static void time_runs(struct resident *resident, unsigned char *const *given, unsigned char **found,
                      size_t repeats)
{
    const struct network *network = resident->network;
    unsigned long long *ns = room_for(network->launches, sizeof *ns);
    double *whole = room_for(repeats, sizeof *whole);
    double *own = room_for(repeats * network->operations, sizeof *own);
    run(resident, given, found, ns);
    for (size_t k = 0; k < repeats; k++) {
        double begun = seconds();
        run(resident, given, found, ns);
        whole[k] = 1e3 * (seconds() - begun);
        for (size_t i = 0; i < network->launches; i++)
            own[network->launch[i].operation * repeats + k] += 1e-6 * (double)ns[i];
    }
    if (resident->by_host)
        printf("%s\n", BY_HOST);
    for (size_t i = 0; i < network->operations; i++)
        printf("operation %.6f ms  %s\n", median(own + i * repeats, repeats),
               network->operation[i]);
    printf("time %.6f ms on the host, with copies of inputs and results\n",
           median(whole, repeats));
    free(ns);
    free(whole);
    free(own);
}

/* Compares the results with the expected ones; `worst` keeps the largest error of each. */
static int judge_all(const struct network *network, unsigned char *const *found, double *worst)
{
    int wrong = 0;
    for (size_t i = 0; i < network->outputs; i++) {
        struct verdict verdict = judged(&network->output[i].expected, found[i]);
        if (verdict.error > worst[i])
            worst[i] = verdict.error;
        if (verdict.wrong)
            fprintf(stderr, "network: %s is wrong: element %zu is %g, it should be %g\n",
                    network->output[i].name, verdict.element, verdict.got, verdict.wanted);
        wrong |= verdict.wrong;
    }
    return wrong;
}

static int checked(struct resident *resident, unsigned char *const *given, unsigned char **found)
{
    const struct network *network = resident->network;
    unsigned long long *ns = room_for(network->launches, sizeof *ns);
    double *worst = room_for(network->outputs, sizeof *worst);
    int wrong = 0;
    for (size_t i = 0; i < sizeof FILLS; i++) {
        fill_arena(resident, FILLS[i]);
        run(resident, given, found, ns);
        wrong |= judge_all(network, found, worst);
    }
    for (size_t i = 0; i < network->outputs; i++)
        printf("checked %s: error %.3g, tolerance %.3g\n", network->output[i].name, worst[i],
               network->output[i].expected.tolerance);
    free(ns);
    free(worst);
    return wrong;
}

static int use(const struct network *network, const struct device *device,
               const struct options *options)
{
    unsigned char **given = room_for(network->inputs, sizeof *given);
    unsigned char **found = room_for(network->outputs, sizeof *found);
    unsigned char **own = room_for(network->inputs, sizeof *own);
    int wrong = 0;
    for (size_t i = 0; i < network->inputs; i++)
        given[i] = network->input[i].stored.bytes;
    for (size_t i = 0; i < options->inputs; i++) {
        const char *file;
        size_t input = input_of(network, options->input[i], &file);
        free(own[input]);
        given[input] = own[input] = read_numbers(file, &network->input[input]);
    }
    for (size_t i = 0; i < network->outputs; i++)
        found[i] = room_for(network->output[i].bytes, 1);
    struct resident *resident = make_resident(network, device);
    if (options->check)
        wrong = checked(resident, given, found);
    if (options->repeats)
        time_runs(resident, given, found, options->repeats);
    if (!options->check && !options->repeats) {
        unsigned long long *ns = room_for(network->launches, sizeof *ns);
        run(resident, given, found, ns);
        free(ns);
    }
    for (size_t i = 0; i < network->outputs; i++) {
        if (options->output)
            write_numbers(options->output, &network->output[i], found[i]);
        free(found[i]);
    }
    for (size_t i = 0; i < network->inputs; i++)
        free(own[i]);
    free(own);
    free(given);
    free(found);
    free_resident(resident);
    return wrong;
}

int main(int count, char **words)
{
    const unsigned one = 1;
    unsigned char low;
    size_t devices;
    int wrong = 0;
    struct options options = read_options(count, words);
    memcpy(&low, &one, 1);
    if (!low)
        give_up("a bundle needs a little-endian processor");
    struct network *network = options.list ? NULL : read_network(options.bundle);
    load_opencl(options.bundle, options.library);
    struct device *device = find_devices(&devices);
    if (options.list) {
        struct text there = {0};
        list(&there, device, devices);
        fputs(there.bytes, stdout);
        drop(&there);
    } else {
        const struct device *chosen = choose(device, devices, options.device, &network->target);
        fprintf(stderr, "network: %s on %s: %s, driver %s\n", network->name, chosen->platform_name,
                chosen->name, chosen->driver);
        wrong = use(network, chosen, &options);
        free_network(network);
    }
    free_devices(device, devices);
    free(options.input);
    if (fflush(stdout))
        give_up("the output cannot be written");
    return wrong;
}
