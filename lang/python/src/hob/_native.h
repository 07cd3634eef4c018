/* What the files of the accelerator share: libhob's calls, the two types, errors. */
#ifndef HOB_NATIVE_H
#define HOB_NATIVE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "hob.h"

/* What the package's Python code expects of this module; native.py has the same number. */
#define INTERFACE 2

/* ---- libhob, opened at run time ---- */

#define CALLS(X)                                                                             \
    X(connect) X(accept) X(concurrency) X(carrier) X(set_lifetime) X(next_variable)          \
    X(content_length) X(read) X(head) X(trailer) X(interim) X(write) X(flush) X(finish)      \
    X(fail) X(is_cancelled) X(log) X(trace) X(callout) X(explain) X(version) X(indexed)

#define FIELD(name) __typeof__(&hob_##name) name;
struct calls {
    CALLS(FIELD)
};
extern struct calls lib;

typedef struct {
    PyObject_HEAD
    hob *server;
} Server;

typedef struct {
    PyObject_HEAD
    hob_request *request; /* NULL once finished */
    Server *owner;
    bool has_begun, is_over, is_cancelled;
    struct timespec looked;
} Exchange;

/* A new reference to None. Py_RETURN_NONE of newer headers takes none, which older Pythons need. */
static inline PyObject *none(void) {
    Py_INCREF(Py_None);
    return Py_None;
}

/* The exception for a code of libhob; always NULL. */
PyObject *raise_code(int code);

/* Whether a code is an error, which is raised then. That the client has left is none. */
bool has_failed(Exchange *self, int code);

/* accept(): a new reference; None when the server wants no more. */
PyObject *server_accept(Server *self, PyObject *unused);

/* The variables in a copy of a dict. */
PyObject *exchange_environ_on(Exchange *self, PyObject *base);

/* _wsgi.c: run_wsgi(application, base, server) of the connection. */
PyObject *server_run_wsgi(Server *self, PyObject *words);

/* _wsgi.c: makes its type; -1 with an error. */
int prepare_wsgi(void);

#endif
