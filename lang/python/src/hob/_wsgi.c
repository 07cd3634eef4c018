/* The native part's loop over WSGI requests.
 *
 * What most applications do is done here: start_response once, then a list with the whole body.
 * Everything else goes to Answer of wsgi.py, which is made when it is needed.
 */
#include "_native.h"

/* start_response, and what it was told. */
typedef struct {
    PyObject_HEAD
    Exchange *exchange;
    PyObject *server;         /* Server of wsgi.py */
    PyObject *status, *fields; /* NULL until told */
    PyObject *answer;         /* Answer of wsgi.py, once there is need of it */
    bool is_head;
} Start;

static PyTypeObject *start_type;
static PyObject *name_https, *name_scheme, *name_input, *name_exchange, *name_write;

/* The Answer that has been told what was told here; a borrowed reference. */
static PyObject *answer_of(Start *self) {
    if (self->answer != NULL)
        return self->answer;
    PyObject *answer = PyObject_CallMethod(
        self->server, "answer_for", "Oi", (PyObject *)self->exchange, (int)self->is_head);
    if (answer != NULL && self->status != NULL) {
        PyObject *write = PyObject_CallMethod(answer, "start", "OO", self->status, self->fields);
        if (write == NULL)
            Py_CLEAR(answer);
        Py_XDECREF(write);
    }
    self->answer = answer;
    return answer;
}

static PyObject *start_call(Start *self, PyObject *words, PyObject *named) {
    Py_ssize_t count = PyTuple_Size(words);
    bool is_usual = count == 2 && named == NULL && self->status == NULL && self->answer == NULL;
    if (!is_usual) {
        PyObject *answer = answer_of(self);
        PyObject *start = answer == NULL ? NULL : PyObject_GetAttrString(answer, "start");
        PyObject *write = start == NULL ? NULL : PyObject_Call(start, words, named);
        Py_XDECREF(start);
        return write;
    }
    self->status = PyTuple_GetItem(words, 0);
    self->fields = PyTuple_GetItem(words, 1);
    Py_INCREF(self->status);
    Py_INCREF(self->fields);
    return PyObject_GetAttr((PyObject *)self, name_write);
}

static PyObject *start_write(Start *self, PyObject *data) {
    PyObject *answer = answer_of(self);
    return answer == NULL ? NULL : PyObject_CallMethod(answer, "write", "O", data);
}

static void start_free(Start *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->exchange);
    Py_XDECREF(self->server);
    Py_XDECREF(self->status);
    Py_XDECREF(self->fields);
    Py_XDECREF(self->answer);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef start_methods[] = {
    {"write", (PyCFunction)start_write, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *refuse(PyTypeObject *type, PyObject *words, PyObject *named) {
    (void)type, (void)words, (void)named;
    PyErr_SetString(PyExc_TypeError, "made for each request only");
    return NULL;
}

static PyType_Slot start_slots[] = {
    {Py_tp_doc, "start_response"}, {Py_tp_new, refuse},           {Py_tp_dealloc, start_free},
    {Py_tp_call, start_call},      {Py_tp_methods, start_methods}, {0, NULL},
};

static PyType_Spec start_spec = {
    .name = "hob._native.Start",
    .basicsize = sizeof(Start),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = start_slots,
};

int prepare_wsgi(void) {
    start_type = (PyTypeObject *)PyType_FromSpec(&start_spec);
    return start_type == NULL ? -1 : 0;
}

/* ---- the usual answer ---- */

/* An answer of so many bytes fits into every window. */
static const size_t AT_ONCE_BYTES_MAX = 4096;

/* The number of `200 OK`; 0 when it is not that simple, and Answer is to say why. */
static int usual_status(PyObject *status) {
    if (!PyUnicode_Check(status) || PyUnicode_GetLength(status) < 4 ||
        PyUnicode_ReadChar(status, 3) != ' ')
        return 0;
    int number = 0;
    for (Py_ssize_t at = 0; at < 3; at++) {
        Py_UCS4 digit = PyUnicode_ReadChar(status, at);
        if (digit < '0' || digit > '9')
            return 0;
        number = number * 10 + (int)(digit - '0');
    }
    return number < 200 || number > 599 || number == 204 || number == 304 ? 0 : number;
}

/* Lines of the fields; false when they are not that simple. */
static bool usual_lines(PyObject *fields, struct Lines *lines) {
    if (!PyList_CheckExact(fields))
        return false;
    for (Py_ssize_t at = 0; at < PyList_Size(fields); at++) {
        PyObject *pair = PyList_GetItem(fields, at);
        if (!PyTuple_CheckExact(pair) || PyTuple_Size(pair) != 2 ||
            !PyUnicode_Check(PyTuple_GetItem(pair, 0)) || !PyUnicode_Check(PyTuple_GetItem(pair, 1)) ||
            !append_field(lines, PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1)))
            return false;
    }
    return true;
}

/* Sends an answer that is whole and simple. 1: done, 0: it is not, -1: an error. */
static int send_usual(Start *start, PyObject *result) {
    Exchange *exchange = start->exchange;
    if (start->answer != NULL || start->status == NULL || start->is_head ||
        exchange->request == NULL || !PyList_CheckExact(result) || PyList_Size(result) != 1 ||
        !PyBytes_CheckExact(PyList_GetItem(result, 0)))
        return 0;
    int status = usual_status(start->status), code;
    struct Lines lines;
    lines.length = 0;
    if (!status || !usual_lines(start->fields, &lines))
        return 0;
    hob_request *request = exchange->request;
    code = lib.head(request, status, lines.text, lines.length);
    if (code < 0)
        return 0; /* refused by libhob: Answer says what it is */
    PyObject *body = PyList_GetItem(result, 0);
    char *bytes = PyBytes_AsString(body);
    size_t size = (size_t)PyBytes_Size(body);
    exchange->has_begun = true;
    if (size <= AT_ONCE_BYTES_MAX) {
        bool is_good = size == 0 || !has_failed(exchange, lib.write(request, bytes, size));
        return is_good && finish_at_once(exchange) ? 1 : -1;
    }
    exchange->request = NULL;
    exchange->is_over = true;
    Py_INCREF(body);
    Py_BEGIN_ALLOW_THREADS
    code = lib.write(request, bytes, size);
    int last = lib.finish(request);
    code = code < 0 ? code : last;
    Py_END_ALLOW_THREADS
    Py_DECREF(body);
    return has_failed(exchange, code) ? -1 : 1;
}

/* ---- the loop ---- */

static bool prepare_names(void) {
    if (name_exchange == NULL) {
        name_https = PyUnicode_InternFromString("https");
        name_scheme = PyUnicode_InternFromString("wsgi.url_scheme");
        name_input = PyUnicode_InternFromString("wsgi.input");
        name_write = PyUnicode_InternFromString("write");
        name_exchange = PyUnicode_InternFromString("hob.exchange");
    }
    return name_https && name_scheme && name_input && name_write && name_exchange;
}

static bool is_word(Exchange *exchange, int place, const char *word) {
    const char *value = lib.indexed(exchange->request, place, NULL);
    return value != NULL && strcmp(value, word) == 0;
}

static PyObject *environ_of(Exchange *exchange, PyObject *base, PyObject *server) {
    static struct Template template;
    PyObject *environ = environ_of_template(&template, exchange->request, base);
    if (environ == NULL)
        return NULL;
    if (is_word(exchange, HOB_REQUEST_SCHEME, "https") &&
        PyDict_SetItem(environ, name_scheme, name_https) < 0)
        goto failed;
    if (lib.content_length(exchange->request) != 0) {
        PyObject *input = PyObject_CallMethod(server, "input_of", "O", (PyObject *)exchange);
        int refused = input == NULL ? -1 : PyDict_SetItem(environ, name_input, input);
        Py_XDECREF(input);
        if (refused)
            goto failed;
    }
    if (PyDict_SetItem(environ, name_exchange, (PyObject *)exchange) == 0)
        return environ;
failed:
    Py_DECREF(environ);
    return NULL;
}

/* The application has raised: Answer says so to log and client. */
static int report(Start *start) {
    PyObject *type, *error, *trace, *done = NULL;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace != NULL)
        PyException_SetTraceback(error, trace);
    PyObject *server = start->server;
    done = PyObject_CallMethod(
        server, "raised", "OOi", (PyObject *)start->exchange, error, (int)start->is_head);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int serve_one(Exchange *exchange, PyObject *application, PyObject *base, PyObject *server) {
    static allocfunc make;
    if (make == NULL)
        make = (allocfunc)PyType_GetSlot(start_type, Py_tp_alloc);
    Start *start = (Start *)make(start_type, 0);
    if (start == NULL)
        return -1;
    Py_INCREF(exchange);
    Py_INCREF(server);
    start->exchange = exchange;
    start->server = server;
    start->is_head = is_word(exchange, HOB_REQUEST_METHOD, "HEAD");
    PyObject *environ = environ_of(exchange, base, server), *result = NULL;
    int code = -1;
    if (environ != NULL)
        result = PyObject_CallFunctionObjArgs(application, environ, (PyObject *)start, NULL);
    if (result == NULL) {
        code = report(start);
    } else {
        code = send_usual(start, result);
        if (code == 0) {
            PyObject *answer = answer_of(start);
            PyObject *done =
                answer == NULL ? NULL : PyObject_CallMethod(server, "conclude", "OO", answer, result);
            code = done != NULL ? 0 : answer == NULL ? report(start) : -1;
            Py_XDECREF(done);
        }
    }
    Py_XDECREF(result);
    Py_XDECREF(environ);
    Py_DECREF(start);
    return code < 0 ? -1 : 0;
}

PyObject *server_run_wsgi(Server *self, PyObject *words) {
    PyObject *application, *base, *server;
    if (!PyArg_ParseTuple(words, "OOO", &application, &base, &server) || !prepare_names())
        return NULL;
    for (;;) {
        PyObject *exchange = server_accept(self, NULL);
        if (exchange == NULL || exchange == Py_None)
            return exchange;
        int code = serve_one((Exchange *)exchange, application, base, server);
        Py_DECREF(exchange);
        if (code < 0 || PyErr_CheckSignals() < 0)
            return NULL;
    }
}
