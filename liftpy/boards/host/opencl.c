/* Loads the OpenCL library at run time, and looks up its functions. */

#define _POSIX_C_SOURCE 200112L

#include "opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

struct opencl opencl;

static const char *const USUAL[] = {
    "libOpenCL.so.1",
    "libOpenCL.so",
    "/vendor/lib64/libOpenCL.so",
    "/system/vendor/lib64/libOpenCL.so",
    "/vendor/lib64/egl/libGLES_mali.so",
    "/vendor/lib/libOpenCL.so",
    "/System/Library/Frameworks/OpenCL.framework/OpenCL",
};

/* The rest of a line that begins with a word; NULL if the line begins with something else. */
static const char *after(const char *line, const char *word)
{
    size_t length = strlen(word);
    return strncmp(line, word, length) || line[length] != ' ' ? NULL : line + length + 1;
}

/* The library that library.txt names, after loading its dependencies. NULL unless all files that
   library.txt names exist, as they do on the machine that made the bundle. To be freed. */
static char *library_of(const char *bundle)
{
    size_t size;
    char *path = path_in(bundle, "library.txt"), *found = NULL;
    char *bytes = (char *)read_file(path, &size);
    free(path);
    for (int really = 0; bytes && really < 2; really++) {
        char *whole = copied(bytes);
        for (char *line = strtok(whole, "\n"); line; line = strtok(NULL, "\n")) {
            const char *needed = after(line, "needs"), *library = after(line, "library");
            const char *vendors = after(line, "vendors");
            const char *file = needed ? needed : library ? library : vendors;
            if (!file || access(file, R_OK)) {
                free(whole);
                free(bytes);
                return NULL;
            }
            if (really && needed && !dlopen(needed, RTLD_NOW | RTLD_LOCAL))
                fprintf(stderr, "%s: %s\n", program_name, dlerror());
            if (really && vendors)
                setenv("OCL_ICD_VENDORS", vendors, 0);
            if (really && library)
                found = copied(library);
        }
        free(whole);
    }
    free(bytes);
    return found;
}

void load_opencl(const char *bundle, const char *named)
{
    struct text tried = {0};
    void *library = NULL;
    char *own = library_of(bundle); /* also loads dependencies that a named library may need */
    if (named) {
        free(own);
        own = copied(named);
    }
    if (own && !(library = dlopen(own, RTLD_NOW | RTLD_LOCAL)))
        add(&tried, "\n  %s", dlerror());
    for (size_t i = 0; !library && !named && i < sizeof USUAL / sizeof *USUAL; i++)
        if (!(library = dlopen(USUAL[i], RTLD_NOW | RTLD_LOCAL)))
            add(&tried, "\n  %s", dlerror());
    if (!library)
        give_up("no OpenCL library can be loaded:%s\n"
                "Install the loader (Debian: ocl-icd-libopencl1) and the device's driver, or name "
                "the library: ./%s --library FILE",
                tried.bytes, program_name);
#define LOOK_UP(result, name, parameters)                                                          \
    {                                                                                              \
        void *found = dlsym(library, #name);                                                       \
        if (!found)                                                                                \
            give_up("the OpenCL library has no " #name ": OpenCL 1.2 is needed");                  \
        memcpy(&opencl.name##_, &found, sizeof found);                                             \
    }
    OPENCL_FUNCTIONS(LOOK_UP)
    drop(&tried);
    free(own);
}
