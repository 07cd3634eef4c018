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
#define INTERFACE 3

/* ---- libhob, opened at run time ---- */

#define CALLS(X)                                                                             \
    X(connect) X(accept) X(concurrency) X(carrier) X(set_lifetime)                           \
    X(content_length) X(read) X(head) X(trailer) X(interim) X(write) X(flush) X(finish)      \
    X(fail) X(is_cancelled) X(log) X(trace) X(callout) X(explain) X(version) X(indexed)      \
    X(variables) X(accept_within) X(read_within) X(write_some) X(look) X(fd)

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

/* A request that was accepted, as an Exchange; a new reference. */
PyObject *exchange_made(Server *self, hob_request *request);

/* Ends an answer; None, or NULL with an error. */
PyObject *exchange_finished(Exchange *self);

/* ---- _environ.c: variables and fields ---- */

/* In Python's stable ABI since 3.10, and in every Python before it. */
PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *size);

/* A variable's name. */
struct Name {
    PyObject *object, *field; /* str; bytes of the field it stands for, or None */
    size_t length;
    char text[64];
};

/* Names and values that follow each other. */
struct Variables {
    const char *at, *stop;
};

/* A dict of variables that others are copies of. */
struct Template {
    PyObject *base, *environ;
    char *kept;
    size_t length, room;
};

/* Lines of fields. */
struct Lines {
    size_t length;
    char text[4096];
};

const struct Name *name_of(const char *text, size_t length);
struct Variables variables_of(hob_request *request);
bool next_variable(struct Variables *all, const char **name, size_t *name_bytes, const char **value,
                   size_t *value_bytes);
PyObject *environ_of_template(struct Template *template, hob_request *request, PyObject *base);

/* Appends a line; false when it is too long, or is not str or bytes, or could forge a line. */
bool append_field(struct Lines *lines, PyObject *name, PyObject *value);

/* ---- _asgi.c ---- */

/* accept_call(host, base): the next request as a Call; None when none is here, False when no more
 * will come. */
PyObject *server_accept_call(Server *self, PyObject *words);

/* Makes its types; -1 with an error. */
int prepare_asgi(void);

/* ---- _wsgi.c ---- */

/* _wsgi.c: run_wsgi(application, base, server) of the connection. */
PyObject *server_run_wsgi(Server *self, PyObject *words);

/* _wsgi.c: makes its type; -1 with an error. */
int prepare_wsgi(void);

#endif
