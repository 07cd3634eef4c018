/* What the files of the native part share: libhob's calls, the two types, errors. */
#ifndef HOB_NATIVE_H
#define HOB_NATIVE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "hob.h"

/* What the package's Python code expects of this module; native.py has the same number. */
#define INTERFACE 7

/* ---- libhob, opened at run time ---- */

#define CALLS(X)                                                                             \
    X(connect) X(accept) X(concurrency) X(carrier) X(set_lifetime)                           \
    X(content_length) X(read) X(head) X(trailer) X(interim) X(write) X(flush) X(finish)      \
    X(fail) X(is_cancelled) X(log) X(trace) X(callout) X(explain) X(version) X(indexed)      \
    X(variables) X(accept_within) X(read_within) X(write_some) X(look) X(fd)                 \
    X(tunnel) X(is_draining) X(changed) X(number)

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
    uint32_t number; /* kept when it is finished */
    bool has_begun, is_over, is_cancelled;
    struct timespec looked;
} Exchange;

#if Py_LIMITED_API + 0 < 0x030b0000
/* In Python's stable ABI since 3.11, and the same in every Python before it. */
typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;
#define PyBUF_WRITABLE 1
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *view);
#endif

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

/* Ends an answer that does not wait for the client's window: no other thread is let in meanwhile,
 * which costs more than it takes. False with an error. */
bool finish_at_once(Exchange *self);

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

struct Variable {
    const char *name, *value;
    size_t name_bytes, value_bytes;
};

/* The variables of the last request, and at which byte each begins. */
#define VARIABLE_COUNT_MAX 128
struct Last {
    char *bytes;
    size_t length, room, count; /* of 0 variables nothing is known */
    uint32_t starts[VARIABLE_COUNT_MAX + 1];
};

/* Hears of a variable whose value is another than in the last request; below zero is an error. */
typedef int change(void *whom, size_t place, const struct Variable *one);

/* A dict of variables that others are copies of. */
struct Template {
    PyObject *base, *environ;
    struct Last last;
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
bool remember(struct Last *last, struct Variables all);
int tell_changes(struct Last *last, struct Variables all, change *tell, void *whom);
PyObject *environ_of_template(struct Template *template, hob_request *request, PyObject *base);

/* Appends a line; false when it is too long, or is not str or bytes, or could forge a line. */
bool append_field(struct Lines *lines, PyObject *name, PyObject *value);

/* A string to be made once. */
struct Word {
    PyObject **place;
    const char *text;
};

/* Makes them; -1 with an error. */
int make_words(const struct Word *words, size_t count);

/* ---- _scope.c ---- */

/* The scope of a call; a new reference. `base` and `extensions` are copied. */
PyObject *scope_of(PyObject *call, hob_request *request, PyObject *base, PyObject *extensions);

/* Whether the request of the last scope asks for a WebSocket. */
bool wants_websocket(void);

/* Makes its strings; -1 with an error. */
int prepare_scope(void);

/* ---- _asgi.c ---- */

/* serve(...) of the connection, which runs applications. */
PyObject *server_serve(Server *self, PyObject *words);

/* Makes its types; -1 with an error. */
int prepare_asgi(void);

/* ---- _frames.c ---- */

/* unframe(rest, bytes_max) of the module: a message of a WebSocket. */
PyObject *module_unframe(PyObject *unused, PyObject *words);

/* ---- _wsgi.c ---- */

/* _wsgi.c: run_wsgi(application, base, server) of the connection. */
PyObject *server_run_wsgi(Server *self, PyObject *words);

/* _wsgi.c: makes its type; -1 with an error. */
int prepare_wsgi(void);

#endif
