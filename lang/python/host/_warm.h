/* What the files of a warm host of Python share. */
#ifndef HOB_WARM_H
#define HOB_WARM_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include <limits.h>
#include <stdio.h>

#include "reference.h"

/* What serve is given by warm.py. */
#define GIVEN(X) \
    X(find) \
    X(settle) X(prepare) X(code_of) X(execute) X(fail) X(leave) X(unflushed) X(flush_files) \
        X(names) X(modules) X(system) X(variables) X(own_variables) X(ranges) X(is_collecting) \
            X(collect) X(count) X(exit_count) X(exit_run) X(thread_count)

/* Names that are looked up in a child: made before, so that only their hash is read. */
#define WORDS(X) \
    X(threading) \
    X(_threading_atexits) X(stdin) X(stdout) X(stderr) X(__stdin__) X(__stdout__) X(__stderr__) \
        X(closed) X(flush) X(code) X(loader) X(runs_cold)

#define FIELD(name) PyObject *name;
extern struct given {
    GIVEN(FIELD)
} given;
extern struct word {
    WORDS(FIELD)
} word;

/* Modules, and open descriptors, that a script finds. */
extern long module_count, descriptor_count;

/* ---- _warm_script.c ---- */

/* A script that warm.py keeps, as its file was. */
struct script {
    char *file;
    struct warm_stamp stamp;
    PyObject *script, *code, *loader;
    bool runs_cold;
};

/* The script of a run: asked for in Python when its file is another. NULL with an exception, or
 * with the number of an error. */
struct script *script_of(struct warm_run *run, int *error);

/* ---- _warm_end.c ---- */

/* Notes that the script begins: what it makes from now on is its own. */
void note_begin(const struct script *script);

/* Ends as the interpreter does when a script has run, except for taking itself apart. */
void leave_run(void) __attribute__((noreturn));

/* Ends with the error that is set: the script's, or ours for a script that could not be read. */
void leave_failed(bool is_ours) __attribute__((noreturn));

/* The number in what a call gave; -1 when it is none, or failed. */
long number_of(PyObject *answer);

#endif
