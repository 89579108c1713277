/* Runs the candidates of a bundle on an OpenCL device and prints their outcomes as CSV. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "guard.h"
#include "plan.h"
#include "text.h"
#include "trial.h"

const char program_name[] = "board";

static const char HELP[] =
    "board [OPTION ...] > results.csv\n"
    "  --device D     number or part of the name of a device; by default the one that the bundle\n"
    "                 was made for, or the first GPU, or the first device\n"
    "  --library FILE the OpenCL library; by default the system's\n"
    "  --list         list the devices and exit\n"
    "  --describe     print the version of this program and all that liftpy needs to know of the\n"
    "                 devices, and exit\n"
    "  --bundle DIR   the folder of plan.txt; by default .\n"
    "  --only ID      run only this candidate; may be repeated\n"
    "  --skip N       skip the first N candidates\n"
    "  --repeats N    exactly N timed runs of each candidate\n"
    "  --limit N      exit with code 124 if one candidate takes longer than N seconds\n"
    "  --lock FILE    wait until no other run holds FILE, and hold it\n"
    "  --output FILE  append the output to FILE and skip the candidates it has; FILE is created\n"
    "                 with the first output\n"
    "  --resume FILE  skip the candidates in FILE; append the output to it (>> FILE)\n"
    "`liftpy import FILE.db results.csv` reads the output.\n";

/* The version of the options and of what --describe prints (liftpy/boards/link.py). */
static const char VERSION[] = "# liftpy-board 2\n";
static const char FORMAT[] = "# liftpy-results 1\n";
static const char COLUMNS[] =
    "candidate,ordinal,skeleton,sizes,device,driver,source,outcome,reason,"
    "error,rms,build_seconds,prepare_ns,allocated,times_ns,detail\n";

struct options {
    const char *bundle, *device, *library, *output, *resume, *lock;
    const char **only;
    size_t wanted, skip, repeats, limit;
    int list, describe;
};

/* An earlier output of this program. */
struct earlier {
    char *bytes;
    int exists, is_torn;
    size_t rows;
};

static void usage(const char *format, const char *what)
{
    fputs("board: ", stderr);
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
    struct options options = {".", NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0};
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
        if (!strcmp(name, "--describe")) {
            options.describe = 1;
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
            options.output = options.resume = value;
        } else if (!strcmp(name, "--resume")) {
            options.resume = value;
        } else if (!strcmp(name, "--skip")) {
            options.skip = natural(name, value);
        } else if (!strcmp(name, "--repeats")) {
            options.repeats = natural(name, value);
        } else if (!strcmp(name, "--limit")) {
            options.limit = natural(name, value);
        } else if (!strcmp(name, "--lock")) {
            options.lock = value;
        } else if (!strcmp(name, "--only")) {
            options.only = one_more(options.only, options.wanted, sizeof *options.only);
            options.only[options.wanted++] = value;
        } else {
            usage("%s is not an option", name);
        }
    }
    return options;
}

static const char *output; /* a file to print to, created on the first output */

/* Prints a text and flushes the output, so that a crash loses nothing; empties the text. */
static void say(struct text *text)
{
    if (output && !freopen(output, "ab", stdout))
        give_up("%s cannot be written", output);
    output = NULL;
    if (fwrite(text->bytes, 1, text->length, stdout) != text->length || fflush(stdout))
        give_up("the output cannot be written");
    drop(text);
}

static int begins(const char *line, const char *with)
{
    return !strncmp(line, with, strlen(with));
}

/* The number of lines of an earlier output with this beginning. */
static size_t lines(const struct earlier *earlier, const char *with)
{
    size_t found = 0;
    for (const char *line = earlier->bytes; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        found += (size_t)begins(line, with);
    }
    return found;
}

/* Exits unless a line of the earlier output has this beginning. */
static void expect(const struct earlier *earlier, const struct options *options, const char *with)
{
    if (!lines(earlier, with))
        give_up("%s is of another bundle or another device: it has no line that begins with\n"
                "%.*s\nName another file with --resume",
                options->resume, (int)strcspn(with, "\n"), with);
}

/* Reads the complete lines of the earlier output that --resume names, if there is one. */
static struct earlier read_earlier(const struct options *options)
{
    size_t size = 0;
    struct earlier earlier = {NULL, 0, 0, 0};
    if (options->resume)
        earlier.bytes = (char *)read_file(options->resume, &size);
    if (!earlier.bytes || !size)
        return earlier;
    char *last = strrchr(earlier.bytes, '\n');
    earlier.exists = 1;
    earlier.is_torn = earlier.bytes[size - 1] != '\n';
    if (earlier.is_torn && last)
        last[1] = 0;
    return earlier;
}

static void say_start(const struct plan *plan, const struct device *device,
                      const struct options *options, const struct earlier *earlier)
{
    struct text bundle = {0}, which = {0}, described = {0}, start = {0};
    char date[32];
    time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    add(&bundle, "# bundle %s\n", plan->sha256);
    add(&which, "# device ");
    identify(&which, device);
    add(&described, "# device ");
    describe(&described, device, plan->extension, plan->known);
    add(&described, "\n");
    if (earlier->exists) {
        expect(earlier, options, FORMAT);
        expect(earlier, options, bundle.bytes);
        expect(earlier, options, which.bytes);
        add(&start, "%s# resumed %s\n", earlier->is_torn ? "\n# torn\n" : "", date);
    } else {
        add(&start, "%s%s# campaign %s\n%s# started %s\n%s", FORMAT, bundle.bytes, plan->campaign,
            described.bytes, date, COLUMNS);
    }
    say(&start);
    drop(&bundle);
    drop(&which);
    drop(&described);
}

static void say_row(const struct candidate *candidate, const struct device *device,
                    const struct outcome *outcome)
{
    struct text row = {0};
    add(&row, "%s,%s,", candidate->id, candidate->row);
    add_field(&row, device->name);
    add(&row, ",");
    add_field(&row, device->driver);
    add(&row, ",%s,%s,", candidate->sha256, outcome->kind);
    add_field(&row, outcome->reason.bytes ? outcome->reason.bytes : "");
    if (outcome->has_error)
        add(&row, ",%.17g,%.17g", outcome->error, outcome->rms);
    else
        add(&row, ",,");
    add(&row, ",%.6f,%llu,%zu,\"", outcome->build_seconds, outcome->prepare_ns, outcome->allocated);
    for (size_t i = 0; i < outcome->runs * outcome->launches; i++)
        add(&row, "%s%llu", !i ? "" : i % outcome->launches ? " " : ";", outcome->times[i]);
    add(&row, "\",");
    add_field(&row, outcome->detail.bytes ? outcome->detail.bytes : "");
    add(&row, "\n");
    say(&row);
}

static int is_wanted(const struct options *options, const struct plan *plan, size_t number)
{
    if (number < options->skip)
        return 0;
    for (size_t i = 0; i < options->wanted; i++)
        if (!strcmp(options->only[i], plan->candidate[number].id))
            return 1;
    return !options->wanted;
}

static void try_all(const struct plan *plan, const struct device *device,
                    const struct options *options, struct earlier *earlier)
{
    struct first first = {NULL, plan->best_ns};
    struct reference reference = {0};
    open_reference(&reference, plan, device);
    for (size_t i = 0; i < plan->candidates; i++) {
        const struct candidate *candidate = &plan->candidate[i];
        struct text begun = {0}, row = {0};
        add(&begun, "# begin %s\n", candidate->id);
        add(&row, "%s,", candidate->id);
        size_t there = lines(earlier, row.bytes), attempts = lines(earlier, begun.bytes);
        drop(&row);
        earlier->rows += there;
        if (there || !is_wanted(options, plan, i)) {
            drop(&begun);
            continue;
        }
        say(&begun);
        end_after(options->limit);
        struct outcome outcome = {0};
        if (attempts < plan->attempts) {
            outcome = tried(plan, candidate, device, options->repeats, &first, &reference);
        } else {
            outcome.kind = "crashed";
            add(&outcome.reason,
                "the program ended abruptly %zu times while it was running; it is "
                "not tried again",
                attempts);
        }
        end_after(0);
        say_row(candidate, device, &outcome);
        fprintf(stderr, "board: %zu of %zu, %s: %s\n", i + 1, plan->candidates, candidate->id,
                outcome.kind);
        drop_outcome(&outcome);
        earlier->rows++;
    }
    drop_first(&first, plan);
    close_reference(&reference);
}

/* Prints what liftpy needs to know of this machine before it sends anything. */
static void say_machine(const struct device *device, size_t devices)
{
    struct text there = {0};
    char *started = boot();
    add(&there, "%s# boot %s\n", VERSION, started);
    for (size_t i = 0; i < devices; i++) {
        add(&there, "# device ");
        describe(&there, &device[i], NULL, 0);
        add(&there, "\n");
    }
    say(&there);
    free(started);
}

/* Exits if an id of --only is not in the bundle. */
static void check_wanted(const struct options *options, const struct plan *plan)
{
    for (size_t i = 0; i < options->wanted; i++) {
        size_t k = 0;
        while (k < plan->candidates && strcmp(plan->candidate[k].id, options->only[i]))
            k++;
        if (k == plan->candidates)
            give_up("the bundle has no candidate %s", options->only[i]);
    }
}

int main(int count, char **words)
{
    const unsigned one = 1;
    unsigned char low;
    struct options options = read_options(count, words);
    output = options.output;
    memcpy(&low, &one, 1);
    if (!low)
        give_up("a bundle needs a little-endian processor");
    size_t devices;
    if (options.lock)
        hold(options.lock);
    struct plan *plan = options.list || options.describe ? NULL : read_plan(options.bundle);
    load_opencl(options.bundle, options.library);
    struct device *device = find_devices(&devices);
    if (options.list) {
        struct text there = {0};
        list(&there, device, devices);
        say(&there);
    } else if (options.describe) {
        say_machine(device, devices);
    } else {
        const struct device *chosen = choose(device, devices, options.device, &plan->target);
        struct earlier earlier = read_earlier(&options);
        struct text end = {0};
        check_wanted(&options, plan);
        fprintf(stderr, "board: on %s: %s, driver %s\n", chosen->platform_name, chosen->name,
                chosen->driver);
        say_start(plan, chosen, &options, &earlier);
        try_all(plan, chosen, &options, &earlier);
        add(&end, "# end %zu\n", earlier.rows);
        say(&end);
        free(earlier.bytes);
        free_plan(plan);
    }
    free_devices(device, devices);
    free(options.only);
    return 0;
}
