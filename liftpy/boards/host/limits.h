/* Whether a device can launch a built kernel. */
#ifndef LIMITS_H
#define LIMITS_H

#include "device.h"
#include "lines.h"
#include "text.h"

/* Whether a launch respects the limits of the device, and those that the driver reports for the
   built kernel. If not, `reason` gets a sentence, and `detail` the limit for liftpy. */
int kernel_fits(const struct device *device, cl_kernel kernel, const struct range *range,
                struct text *reason, struct text *detail);

#endif
