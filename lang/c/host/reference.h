/* What an interpreter's own objects were made to be for one run, the reference. A child makes them
 * what its run is: mostly a few variables differ, and only those are written.
 */
#ifndef HOB_WARM_REFERENCE_H
#define HOB_WARM_REFERENCE_H

#include "host.h"

/* Runs in a row that differ in more than variables until such a run becomes the reference. */
enum { WARM_STRANGERS_MAX = 8 };

struct warm_reference {
    char *strings, **arguments, **variables;
    size_t argument_count, variable_count;
    unsigned strangers;
    /* Variables, or their names, that are not the run's alone. */
    char **fixed;
    size_t fixed_count;
    /* Those are left alone; else a run that lacks one is a stranger. */
    bool leaves_fixed;
};

/* Makes a run the reference; false without memory. */
static inline bool warm_refer(struct warm_reference *reference, const struct warm_run *run) {
    size_t count = (size_t)run->argument_count + run->variable_count;
    char **pointers = malloc((count + 1) * sizeof *pointers);
    char *strings = malloc(run->string_bytes);
    if (pointers == NULL || strings == NULL) {
        free(pointers);
        free(strings);
        return false;
    }
    free(reference->arguments);
    free(reference->strings);
    memcpy(strings, run->script, run->string_bytes);
    reference->strings = strings;
    reference->arguments = pointers;
    reference->variables = pointers + run->argument_count;
    reference->argument_count = run->argument_count;
    reference->variable_count = run->variable_count;
    for (size_t at = 0; at < run->argument_count; at++)
        reference->arguments[at] = strings + (run->arguments[at] - run->script);
    for (size_t at = 0; at < run->variable_count; at++)
        reference->variables[at] = strings + (run->variables[at] - run->script);
    reference->strangers = 0;
    return true;
}

static inline size_t warm_name_bytes(const char *variable) {
    size_t length = 0;
    while (variable[length] != 0 && variable[length] != '=')
        length++;
    return length;
}

/* Whether one of these has the name of that variable. */
static inline bool warm_has_name(char **variables, size_t count, const char *variable) {
    size_t length = warm_name_bytes(variable);
    for (size_t at = 0; at < count; at++) {
        if (strncmp(variables[at], variable, length) == 0 &&
            (variables[at][length] == '=' || variables[at][length] == 0))
            return true;
    }
    return false;
}

static inline bool warm_is_fixed(const struct warm_reference *reference, const char *variable) {
    return reference->fixed_count > 0 &&
           warm_has_name(reference->fixed, reference->fixed_count, variable);
}

/* Notes the variables of a run that the reference has not so; where the notes end. */
static inline uint16_t *warm_note_new(const struct warm_reference *reference,
                                      const struct warm_run *run, uint16_t *mark,
                                      const uint16_t *stop) {
    /* Mostly they stand in the same order. */
    size_t expected = 0;
    for (size_t at = 0; at < run->variable_count; at++) {
        const char *variable = run->variables[at];
        size_t same = expected;
        while (same < reference->variable_count &&
               strcmp(variable, reference->variables[same]) != 0)
            same++;
        for (size_t before = 0; same == reference->variable_count && before < expected; before++) {
            if (strcmp(variable, reference->variables[before]) == 0)
                same = before;
        }
        if (same < reference->variable_count) {
            expected = same + 1;
            continue;
        }
        if (expected < reference->variable_count &&
            warm_has_name(reference->variables + expected, 1, variable))
            expected++;
        if (reference->leaves_fixed && warm_is_fixed(reference, variable))
            continue;
        if (mark == stop)
            return NULL;
        *mark++ = (uint16_t)at;
    }
    return mark;
}

/* Notes the variables of the reference whose names a run lacks; where the notes end. */
static inline uint16_t *warm_note_gone(const struct warm_reference *reference,
                                       const struct warm_run *run, uint16_t *mark,
                                       const uint16_t *stop) {
    for (size_t at = 0; at < reference->variable_count; at++) {
        const char *variable = reference->variables[at];
        if ((at < run->variable_count && warm_has_name(run->variables + at, 1, variable)) ||
            warm_has_name(run->variables, run->variable_count, variable))
            continue;
        bool is_fixed = warm_is_fixed(reference, variable);
        if (is_fixed && reference->leaves_fixed)
            continue;
        if (is_fixed || mark == stop)
            return NULL;
        *mark++ = (uint16_t)at;
    }
    return mark;
}

/* Whether a run differs from the reference in a few variables only. Notes which: those of the run
 * that are new or others, then those of the reference that it lacks, each list with UINT16_MAX at
 * its end. */
static inline bool warm_is_similar(struct warm_host *host, const struct warm_reference *reference) {
    const struct warm_run *run = &host->run;
    if (reference->strings == NULL || run->argument_count != reference->argument_count ||
        run->variable_count >= UINT16_MAX || reference->variable_count >= UINT16_MAX)
        return false;
    for (size_t at = 0; at < run->argument_count; at++) {
        if (strcmp(run->arguments[at], reference->arguments[at]) != 0)
            return false;
    }
    const uint16_t *stop = host->marks + WARM_MARKS - 2;
    uint16_t *mark = warm_note_new(reference, run, host->marks, stop);
    if (mark == NULL)
        return false;
    *mark++ = UINT16_MAX;
    mark = warm_note_gone(reference, run, mark, stop);
    if (mark == NULL)
        return false;
    *mark = UINT16_MAX;
    return true;
}

#endif
