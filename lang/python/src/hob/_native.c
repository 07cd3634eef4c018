/* The native part: requests through libhob, in shared memory where the server offers it.
 *
 * Objects here have the calls that Stream and Exchange of stream.py have, so the rest of the package
 * does not know the difference. libhob is opened at run time; one build, over Python's stable ABI,
 * serves every version from 3.9 on. Memory rules are libhob's: an Exchange owns its hob_request
 * until it is finished or failed.
 */
#include "_native.h"

struct calls lib;

static PyObject *disconnected, *cancelled, *malformed;

static const long LOOK_EVERY_NS = 50 * 1000 * 1000;
static const Py_ssize_t TAKEN_BYTES_MAX = 65536;
static const size_t REPLY_BYTES_MAX = 65536;
enum { NUMBERS_AT_ONCE = 64 };

static PyTypeObject *server_type, *exchange_type;

/* The exception for a code of libhob. */
PyObject *raise_code(int code) {
    const char *text = lib.explain(code);
    switch (code) {
    case HOB_GONE:
    case HOB_FORKED:
        PyErr_SetString(disconnected, text);
        break;
    case HOB_CANCELLED:
        PyErr_SetString(cancelled, "the client left before its request was complete");
        break;
    case HOB_BROKEN:
        PyErr_SetString(malformed, text);
        break;
    case HOB_TOO_LONG:
        PyErr_SetString(PyExc_ValueError, text);
        break;
    case HOB_SYSTEM:
        PyErr_SetFromErrno(PyExc_OSError);
        break;
    default:
        PyErr_SetString(PyExc_RuntimeError, text);
    }
    return NULL;
}

/* ---- Exchange: what is known of a request ---- */

static bool is_there(Exchange *self) {
    if (self->request != NULL)
        return true;
    PyErr_SetString(PyExc_RuntimeError, "this request has its answer already");
    return false;
}

/* environ_on(base): the variables in a copy of a dict. */
static PyObject *exchange_environ_on(Exchange *self, PyObject *base) {
    static struct Template template;
    if (!is_there(self))
        return NULL;
    if (!PyDict_Check(base)) {
        PyErr_SetString(PyExc_TypeError, "environ_on wants a dict");
        return NULL;
    }
    return environ_of_template(&template, self->request, base);
}

static PyObject *exchange_environ(Exchange *self, void *unused) {
    static PyObject *empty;
    (void)unused;
    if (empty == NULL && (empty = PyDict_New()) == NULL)
        return NULL;
    return exchange_environ_on(self, empty);
}

static PyObject *exchange_length(Exchange *self, void *unused) {
    (void)unused;
    int64_t length = self->request == NULL ? 0 : lib.content_length(self->request);
    if (length < 0)
        return none();
    return PyLong_FromLongLong(length);
}

static PyObject *exchange_number(Exchange *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(self->number);
}

static PyObject *exchange_is_cancelled(Exchange *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->is_cancelled);
}

static PyObject *exchange_is_over(Exchange *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->is_over);
}

static PyObject *exchange_has_begun(Exchange *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->has_begun);
}

/* look(): whether the client has left, asked anew. */
static PyObject *exchange_look(Exchange *self, PyObject *unused) {
    (void)unused;
    if (self->request != NULL && !self->is_cancelled)
        self->is_cancelled = lib.is_cancelled(self->request) == 1;
    return PyBool_FromLong(self->is_cancelled);
}

/* ---- Exchange: the body ---- */

/* take(size): at most so many bytes, waiting for the first; none at the end. */
static PyObject *exchange_take(Exchange *self, PyObject *size) {
    Py_ssize_t wanted = PyLong_AsSsize_t(size);
    if (wanted == -1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return NULL;
        PyErr_Clear();
    }
    if (wanted > TAKEN_BYTES_MAX || wanted < 0)
        wanted = TAKEN_BYTES_MAX;
    if (self->request == NULL)
        return PyBytes_FromStringAndSize(NULL, 0);
    char *room = PyMem_Malloc((size_t)wanted + 1);
    if (room == NULL)
        return PyErr_NoMemory();
    int64_t count;
    Py_BEGIN_ALLOW_THREADS
    count = lib.read(self->request, room, (size_t)wanted);
    Py_END_ALLOW_THREADS
    if (count == HOB_CANCELLED)
        self->is_cancelled = true;
    PyObject *taken = count < 0 ? raise_code((int)count) : PyBytes_FromStringAndSize(room, (Py_ssize_t)count);
    PyMem_Free(room);
    return taken;
}

/* take_into(buffer): the same, into a buffer; how many bytes. */
static PyObject *exchange_take_into(Exchange *self, PyObject *buffer) {
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE) < 0)
        return NULL;
    int64_t count = 0;
    if (self->request != NULL) {
        Py_BEGIN_ALLOW_THREADS
        count = lib.read(self->request, view.buf, (size_t)view.len);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&view);
    if (count == HOB_CANCELLED)
        self->is_cancelled = true;
    return count < 0 ? raise_code((int)count) : PyLong_FromLongLong(count);
}

/* take_now(): what is here of the body, without waiting; None when more will come. */
static PyObject *exchange_take_now(Exchange *self, PyObject *unused) {
    (void)unused;
    if (self->request == NULL)
        return PyBytes_FromStringAndSize(NULL, 0);
    char *room = PyMem_Malloc(TAKEN_BYTES_MAX);
    if (room == NULL)
        return PyErr_NoMemory();
    int64_t count = lib.read_within(self->request, room, TAKEN_BYTES_MAX, 0);
    PyObject *taken;
    if (count == HOB_CANCELLED)
        self->is_cancelled = true;
    if (count == HOB_AGAIN)
        taken = none();
    else
        taken = count < 0 ? raise_code((int)count) : PyBytes_FromStringAndSize(room, (Py_ssize_t)count);
    PyMem_Free(room);
    return taken;
}

/* ---- Exchange: the answer ---- */

bool has_failed(Exchange *self, int code) {
    if (code == HOB_CANCELLED) {
        self->is_cancelled = true; /* what is written is thrown away from now on */
        return false;
    }
    if (code >= 0)
        return false;
    raise_code(code);
    return true;
}

static int set_head(Exchange *self, int status, PyObject *fields) {
    char *lines;
    Py_ssize_t length;
    if (!is_there(self) || PyBytes_AsStringAndSize(fields, &lines, &length) < 0)
        return -1;
    if (self->has_begun) {
        PyErr_SetString(PyExc_RuntimeError, "this request has its answer already");
        return -1;
    }
    if (has_failed(self, lib.head(self->request, status, lines, (size_t)length)))
        return -1;
    self->has_begun = true;
    return 0;
}

static PyObject *exchange_finished(Exchange *self) {
    hob_request *request = self->request;
    int code;
    self->request = NULL;
    self->is_over = true;
    Py_BEGIN_ALLOW_THREADS
    code = lib.finish(request);
    Py_END_ALLOW_THREADS
    if (has_failed(self, code))
        return NULL;
    return none();
}

bool finish_at_once(Exchange *self) {
    hob_request *request = self->request;
    self->request = NULL;
    self->is_over = true;
    return !has_failed(self, lib.finish(request));
}

/* answer(status, fields, body): a whole answer. */
static PyObject *exchange_answer(Exchange *self, PyObject *words) {
    int status, code;
    PyObject *fields, *body;
    char *bytes;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(words, "iSS", &status, &fields, &body) ||
        PyBytes_AsStringAndSize(body, &bytes, &size) < 0 || set_head(self, status, fields) < 0)
        return NULL;
    hob_request *request = self->request;
    self->request = NULL;
    self->is_over = true;
    Py_BEGIN_ALLOW_THREADS
    code = size ? lib.write(request, bytes, (size_t)size) : HOB_OK;
    int last = lib.finish(request);
    code = code < 0 ? code : last;
    Py_END_ALLOW_THREADS
    if (has_failed(self, code))
        return NULL;
    return none();
}

/* head(status, fields): they leave with what is written next. */
static PyObject *exchange_head(Exchange *self, PyObject *words) {
    int status;
    PyObject *fields;
    if (!PyArg_ParseTuple(words, "iS", &status, &fields) || set_head(self, status, fields) < 0)
        return NULL;
    return none();
}

/* tunnel(fields): from here on bytes are raw both ways. */
static PyObject *exchange_tunnel(Exchange *self, PyObject *fields) {
    char *lines;
    Py_ssize_t length;
    if (!is_there(self) || PyBytes_AsStringAndSize(fields, &lines, &length) < 0)
        return NULL;
    if (has_failed(self, lib.tunnel(self->request, 101, lines, (size_t)length)))
        return NULL;
    self->has_begun = true;
    return none();
}

/* flush(): sends a head that still waits. */
static PyObject *exchange_flush(Exchange *self, PyObject *unused) {
    (void)unused;
    int code;
    if (self->request == NULL || !self->has_begun)
        return none();
    Py_BEGIN_ALLOW_THREADS
    code = lib.flush(self->request);
    Py_END_ALLOW_THREADS
    if (has_failed(self, code))
        return NULL;
    return none();
}

/* write_now(data): writes and sends as much as finds room; how many bytes, 0 when none now. */
static PyObject *exchange_write_now(Exchange *self, PyObject *data) {
    char *bytes;
    Py_ssize_t size;
    if (!is_there(self) || PyBytes_AsStringAndSize(data, &bytes, &size) < 0)
        return NULL;
    int64_t count = size ? lib.write_some(self->request, bytes, (size_t)size) : 0;
    int code = count > 0 ? lib.flush(self->request) : HOB_OK;
    if (code < 0)
        count = code;
    if (count == HOB_AGAIN)
        count = 0;
    if (count == HOB_CANCELLED) {
        self->is_cancelled = true;
        count = (int64_t)size;
    }
    return count < 0 ? raise_code((int)count) : PyLong_FromLongLong(count);
}

/* Now and then, so that a program that writes for ever notices that its client has left. */
static void look_now_and_then(Exchange *self) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    long passed = (now.tv_sec - self->looked.tv_sec) * 1000000000L + now.tv_nsec - self->looked.tv_nsec;
    if (passed < LOOK_EVERY_NS)
        return;
    if (self->looked.tv_sec != 0 && lib.is_cancelled(self->request) == 1)
        self->is_cancelled = true;
    self->looked = now;
}

/* write(data, *, last=False): bytes of the answer, which leave at once. */
static PyObject *exchange_write(Exchange *self, PyObject *words, PyObject *named) {
    static char *keywords[] = {"data", "last", NULL};
    PyObject *data;
    int last = 0, code = HOB_OK;
    char *bytes;
    Py_ssize_t size;
    if (!PyArg_ParseTupleAndKeywords(words, named, "O|$p", keywords, &data, &last) || !is_there(self))
        return NULL;
    if (!self->has_begun) {
        PyErr_SetString(PyExc_RuntimeError, "bytes before the head of an answer");
        return NULL;
    }
    data = PyBytes_FromObject(data);
    if (data == NULL || PyBytes_AsStringAndSize(data, &bytes, &size) < 0) {
        Py_XDECREF(data);
        return NULL;
    }
    look_now_and_then(self);
    if (size && !self->is_cancelled) {
        Py_BEGIN_ALLOW_THREADS
        code = lib.write(self->request, bytes, (size_t)size);
        if (code >= 0 && !last)
            code = lib.flush(self->request);
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(data);
    if (has_failed(self, code))
        return NULL;
    if (last)
        return exchange_finished(self);
    return none();
}

/* Each line `Name: value` as a trailer; the lines are ours to cut. */
static int set_trailers(Exchange *self, char *line, char *stop) {
    while (line < stop) {
        char *end = memchr(line, '\n', (size_t)(stop - line));
        char *colon = end == NULL ? NULL : memchr(line, ':', (size_t)(end - line));
        if (colon == NULL) {
            PyErr_SetString(PyExc_ValueError, "a trailer that is no line `Name: value`");
            return -1;
        }
        *colon = *end = '\0';
        char *value = colon + 1;
        value += strspn(value, " ");
        if (has_failed(self, lib.trailer(self->request, line, value)))
            return -1;
        line = end + 1;
    }
    return 0;
}

/* end(trailers=b""): the answer is whole. */
static PyObject *exchange_end(Exchange *self, PyObject *words) {
    PyObject *trailers = NULL; /* formats with # differ between Python's versions */
    char *lines = "";
    Py_ssize_t length = 0;
    if (!PyArg_ParseTuple(words, "|S", &trailers) ||
        (trailers != NULL && PyBytes_AsStringAndSize(trailers, &lines, &length) < 0))
        return NULL;
    if (self->request == NULL)
        return none();
    if (!self->has_begun) {
        PyErr_SetString(PyExc_RuntimeError, "the end of an answer that has no head");
        return NULL;
    }
    if (length) {
        char *copy = PyMem_Malloc((size_t)length);
        if (copy == NULL)
            return PyErr_NoMemory();
        memcpy(copy, lines, (size_t)length);
        int failed = set_trailers(self, copy, copy + length);
        PyMem_Free(copy);
        if (failed)
            return NULL;
    }
    return exchange_finished(self);
}

/* fail(reason): 500, or a broken answer if it had begun. */
static PyObject *exchange_fail(Exchange *self, PyObject *reason) {
    if (self->request == NULL)
        return none();
    PyObject *text = PyUnicode_AsEncodedString(reason, "utf-8", "replace");
    char *words;
    if (text == NULL || PyBytes_AsStringAndSize(text, &words, NULL) < 0) {
        PyErr_Clear(); /* a NUL inside: the reason is not worth an error of its own */
        words = "the program failed";
    }
    hob_request *request = self->request;
    int code;
    self->request = NULL;
    self->is_over = true;
    Py_BEGIN_ALLOW_THREADS
    code = lib.fail(request, words);
    Py_END_ALLOW_THREADS
    Py_XDECREF(text);
    if (has_failed(self, code))
        return NULL;
    return none();
}

/* info(status, fields=b""): an informational answer. */
static PyObject *exchange_info(Exchange *self, PyObject *words) {
    int status;
    PyObject *fields = NULL;
    char *lines = "";
    Py_ssize_t length = 0;
    if (!PyArg_ParseTuple(words, "i|S", &status, &fields) ||
        (fields != NULL && PyBytes_AsStringAndSize(fields, &lines, &length) < 0) || !is_there(self))
        return NULL;
    if (!self->has_begun &&
        has_failed(self, lib.interim(self->request, status, lines, (size_t)length)))
        return NULL;
    return none();
}

/* ---- Exchange: questions to the server ---- */

static PyObject *exchange_callout(Exchange *self, PyObject *words) {
    const char *text;
    size_t length = 0;
    int code;
    if (!PyArg_ParseTuple(words, "s", &text) || !is_there(self))
        return NULL;
    char *reply = PyMem_Malloc(REPLY_BYTES_MAX);
    if (reply == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    code = lib.callout(self->request, text, reply, REPLY_BYTES_MAX, &length);
    Py_END_ALLOW_THREADS
    PyObject *found;
    if (code == HOB_REFUSED)
        found = Py_BuildValue("(is)", 400, lib.explain(code));
    else if (code < 0)
        found = raise_code(code);
    else
        found = Py_BuildValue("(is)", 200, reply);
    PyMem_Free(reply);
    return found;
}

static PyObject *exchange_tell(Exchange *self, PyObject *words) {
    const char *text;
    if (!PyArg_ParseTuple(words, "s", &text) || !is_there(self))
        return NULL;
    int code = HOB_OK;
    char level[16] = "info", nothing[1];
    if (strncmp(text, "LOG: ", 5) == 0) {
        size_t length = strcspn(text + 5, " ");
        if (text[5 + length] == ' ' && length < sizeof level) {
            memcpy(level, text + 5, length);
            level[length] = '\0';
            code = lib.log(self->request, level, text + 6 + length);
        }
    } else if (strncmp(text, "TRACE: ", 7) == 0) {
        code = lib.trace(self->request, text + 7);
    } else {
        code = lib.callout(self->request, text, nothing, sizeof nothing, NULL);
    }
    if (code != HOB_REFUSED && has_failed(self, code))
        return NULL;
    return none();
}

static void exchange_free(Exchange *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (self->request != NULL) {
        hob_request *request = self->request;
        Py_BEGIN_ALLOW_THREADS
        lib.fail(request, "the program left the request without an answer");
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(self->owner);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef exchange_methods[] = {
    {"environ_on", (PyCFunction)exchange_environ_on, METH_O, NULL},
    {"take", (PyCFunction)exchange_take, METH_O, NULL},
    {"take_into", (PyCFunction)exchange_take_into, METH_O, NULL},
    {"take_now", (PyCFunction)exchange_take_now, METH_NOARGS, NULL},
    {"write_now", (PyCFunction)exchange_write_now, METH_O, NULL},
    {"look", (PyCFunction)exchange_look, METH_NOARGS, NULL},
    {"answer", (PyCFunction)exchange_answer, METH_VARARGS, NULL},
    {"head", (PyCFunction)exchange_head, METH_VARARGS, NULL},
    {"tunnel", (PyCFunction)exchange_tunnel, METH_O, NULL},
    {"flush", (PyCFunction)exchange_flush, METH_NOARGS, NULL},
    {"write", (PyCFunction)(void (*)(void))exchange_write, METH_VARARGS | METH_KEYWORDS, NULL},
    {"end", (PyCFunction)exchange_end, METH_VARARGS, NULL},
    {"fail", (PyCFunction)exchange_fail, METH_O, NULL},
    {"info", (PyCFunction)exchange_info, METH_VARARGS, NULL},
    {"callout", (PyCFunction)exchange_callout, METH_VARARGS, NULL},
    {"tell", (PyCFunction)exchange_tell, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef exchange_values[] = {
    {"environ", (getter)exchange_environ, NULL, NULL, NULL},
    {"length", (getter)exchange_length, NULL, NULL, NULL},
    {"number", (getter)exchange_number, NULL, NULL, NULL},
    {"is_cancelled", (getter)exchange_is_cancelled, NULL, NULL, NULL},
    {"is_over", (getter)exchange_is_over, NULL, NULL, NULL},
    {"has_begun", (getter)exchange_has_begun, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* Exchanges and the connection come from here alone. */
static PyObject *refuse(PyTypeObject *type, PyObject *words, PyObject *named) {
    (void)type, (void)words, (void)named;
    PyErr_SetString(PyExc_TypeError, "made by connect() and accept() only");
    return NULL;
}

static PyType_Slot exchange_slots[] = {
    {Py_tp_doc, "One request and its answer, as stream.Exchange."},
    {Py_tp_new, refuse},
    {Py_tp_dealloc, exchange_free},
    {Py_tp_methods, exchange_methods},
    {Py_tp_getset, exchange_values},
    {0, NULL},
};

static PyType_Spec exchange_spec = {
    .name = "hob._native.Exchange",
    .basicsize = sizeof(Exchange),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = exchange_slots,
};

/* ---- Server ---- */

/* accept(): the next request; None when the server wants no more. */
PyObject *server_accept(Server *self, PyObject *unused) {
    (void)unused;
    hob_request *request = NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = lib.accept(self->server, &request);
    Py_END_ALLOW_THREADS
    if (code == HOB_NO_MORE)
        return none();
    if (code < 0)
        return raise_code(code);
    return exchange_made(self, request);
}

PyObject *exchange_made(Server *self, hob_request *request) {
    static allocfunc make;
    if (make == NULL)
        make = (allocfunc)PyType_GetSlot(exchange_type, Py_tp_alloc);
    Exchange *exchange = (Exchange *)make(exchange_type, 0);
    if (exchange == NULL) {
        lib.fail(request, "no memory");
        return NULL;
    }
    exchange->request = request;
    exchange->number = lib.number(request);
    Py_INCREF(self);
    exchange->owner = self;
    return (PyObject *)exchange;
}

/* look(): takes in what has come. The numbers of those requests that it has come for, 0 for requests
 * that wait to be accepted; None when nothing has. Then `fd` becomes readable when something does. */
static PyObject *server_look(Server *self, PyObject *unused) {
    (void)unused;
    int code = lib.look(self->server);
    if (code == HOB_AGAIN)
        return none();
    uint32_t numbers[NUMBERS_AT_ONCE];
    PyObject *all = code < 0 ? raise_code(code) : PyList_New(0);
    for (int count = NUMBERS_AT_ONCE; all != NULL && count == NUMBERS_AT_ONCE;) {
        count = lib.changed(self->server, numbers, NUMBERS_AT_ONCE);
        for (int at = 0; all != NULL && at < count; at++) {
            PyObject *number = PyLong_FromUnsignedLong(numbers[at]);
            if (number == NULL || PyList_Append(all, number) < 0)
                Py_CLEAR(all);
            Py_XDECREF(number);
        }
        if (count < 0) {
            Py_CLEAR(all);
            raise_code(count);
        }
    }
    return all;
}

static PyObject *server_fd(Server *self, void *unused) {
    (void)unused;
    int fd = lib.fd(self->server);
    return fd < 0 ? raise_code(fd) : PyLong_FromLong(fd);
}

/* callout(text): of the questions about the worker itself there is one, LIFETIME. */
static PyObject *server_callout(Server *self, PyObject *words) {
    const char *text;
    long long seconds;
    if (!PyArg_ParseTuple(words, "s", &text))
        return NULL;
    if (sscanf(text, "LIFETIME: %lld", &seconds) != 1)
        return Py_BuildValue("(is)", 400, "unknown callout");
    int code = lib.set_lifetime(self->server, seconds);
    return code < 0 ? raise_code(code) : Py_BuildValue("(is)", 200, "");
}

static PyObject *server_concurrency(Server *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(lib.concurrency(self->server));
}

static PyObject *server_carrier(Server *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(lib.carrier(self->server));
}

static PyObject *server_is_draining(Server *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(lib.is_draining(self->server) == 1);
}

static void server_free(Server *self) {
    /* The connection stays until the process ends: its end is what the server sees as ours. */
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef server_methods[] = {
    {"accept", (PyCFunction)server_accept, METH_NOARGS, NULL},
    {"callout", (PyCFunction)server_callout, METH_VARARGS, NULL},
    {"run_wsgi", (PyCFunction)server_run_wsgi, METH_VARARGS, NULL},
    {"serve", (PyCFunction)server_serve, METH_VARARGS, NULL},
    {"look", (PyCFunction)server_look, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef server_values[] = {
    {"concurrency", (getter)server_concurrency, NULL, NULL, NULL},
    {"carrier", (getter)server_carrier, NULL, NULL, NULL},
    {"fd", (getter)server_fd, NULL, NULL, NULL},
    {"is_draining", (getter)server_is_draining, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot server_slots[] = {
    {Py_tp_doc, "The connection, as stream.Stream."},
    {Py_tp_new, refuse},
    {Py_tp_dealloc, server_free},
    {Py_tp_methods, server_methods},
    {Py_tp_getset, server_values},
    {0, NULL},
};

static PyType_Spec server_spec = {
    .name = "hob._native.Server",
    .basicsize = sizeof(Server),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = server_slots,
};

/* ---- the module ---- */

/* open(path, Disconnected, Cancelled, Malformed): finds libhob; the errors are raised here. */
static PyObject *module_open(PyObject *module, PyObject *words) {
    (void)module;
    const char *path;
    PyObject *errors[3];
    if (!PyArg_ParseTuple(words, "sOOO", &path, &errors[0], &errors[1], &errors[2]))
        return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
#define FIND(name)                                                                           \
    *(void **)&lib.name = dlsym(library, "hob_" #name);                                      \
    if (lib.name == NULL) {                                                                  \
        PyErr_SetString(PyExc_OSError, "no hob_" #name " in libhob");                        \
        return NULL;                                                                         \
    }
    CALLS(FIND)
    PyObject **places[3] = {&disconnected, &cancelled, &malformed};
    for (int at = 0; at < 3; at++) {
        Py_INCREF(errors[at]);
        *places[at] = errors[at];
    }
    return PyUnicode_FromString(lib.version());
}

/* connect(): greets the server. The environment has HOB_FD still. */
static PyObject *module_connect(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    hob *server = NULL;
    int code;
    if (lib.connect == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "connect before open");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    code = lib.connect(&server);
    Py_END_ALLOW_THREADS
    if (code < 0)
        return raise_code(code);
    allocfunc make = (allocfunc)PyType_GetSlot(server_type, Py_tp_alloc);
    Server *made = (Server *)make(server_type, 0);
    if (made != NULL)
        made->server = server;
    return (PyObject *)made;
}

static PyMethodDef module_methods[] = {
    {"open", module_open, METH_VARARGS, NULL},
    {"connect", module_connect, METH_NOARGS, NULL},
    {"unframe", module_unframe, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "Requests through libhob.",
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC PyInit__native(void) {
    server_type = (PyTypeObject *)PyType_FromSpec(&server_spec);
    exchange_type = (PyTypeObject *)PyType_FromSpec(&exchange_spec);
    PyObject *module = PyModule_Create(&module_definition);
    if (server_type == NULL || exchange_type == NULL || module == NULL || prepare_wsgi() < 0 ||
        prepare_asgi() < 0)
        return NULL;
    if (PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0)
        return NULL;
    return module;
}
