#include "reference.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"

/* The nanoseconds of a run; 0 if it failed, after which the kernel is not used. */
static unsigned long long ran_once(struct reference *reference)
{
    unsigned long long ns = 0;
    if (ran_again(&reference->loaded, &ns))
        return ns;
    fprintf(stderr, "board: the reference kernel cannot be run: %s\n",
            reference->outcome.reason.bytes);
    reference->used = 0;
    return 0;
}

void open_reference(struct reference *reference, const struct plan *plan,
                    const struct device *device)
{
    const struct loaded loaded = {.plan = plan,
                                  .candidate = plan->reference,
                                  .device = device,
                                  .outcome = &reference->outcome};
    reference->loaded = loaded;
    if (!plan->reference || plan->reference->launches != 1)
        return;
    reference->used = load(&reference->loaded);
    if (!reference->used) {
        fprintf(stderr, "board: the reference kernel cannot be built: %s\n",
                reference->outcome.reason.bytes);
        return;
    }
    double start = seconds();
    ran_once(reference);
    if (1e9 * (seconds() - start) > plan->longest_ns)
        reference->used = 0;
}

unsigned long long look(struct reference *reference)
{
    const struct plan *plan = reference->loaded.plan;
    unsigned long long shortest = 0;
    double end = seconds() + 1e-9 * plan->warm_ns;
    while (reference->used && seconds() < end)
        ran_once(reference);
    for (size_t i = 0; reference->used && i < plan->looks; i++) {
        unsigned long long ns = ran_once(reference);
        if (!i || ns < shortest)
            shortest = ns;
    }
    return reference->used ? shortest : 0;
}

void close_reference(struct reference *reference)
{
    if (reference->loaded.candidate)
        unload(&reference->loaded);
    drop(&reference->outcome.reason);
    drop(&reference->outcome.detail);
}
