/* The accelerator's part of the ASGI host: scopes, and the usual `receive` and `send`.
 *
 * What most applications do needs no waiting: the body of a request without one, a head, a body that
 * finds room. That is done here, at once; what is awaited then is over before it begins. Everything
 * else goes to coroutines of Shared in asgi.py. Nothing here waits for a client.
 */
#include "_native.h"

#include <structmember.h>

/* One request: what `receive` and `send` belong to. */
typedef struct {
    PyObject_HEAD
    Exchange *exchange;
    PyObject *host;         /* Shared of asgi.py */
    char is_head;           /* nobody would see a body */
    char has_trailers;      /* the head has announced them */
    char is_body_over;      /* of the request: the application has all of it */
    char is_awaited;        /* a coroutine waits for something to change */
} Call;

/* What is awaited and over: gives a value, or None. */
typedef struct {
    PyObject_HEAD
    PyObject *value;
} Given;

static PyTypeObject *call_type, *given_type;
static PyObject *nothing; /* a Given of None */

static PyObject *word_type, *word_start, *word_body, *word_status, *word_headers, *word_trailers;
static PyObject *key_body, *key_more, *key_hob;
static PyObject *receive_usual; /* the message of an empty body */

/* ---- awaiting what is there ---- */

static PyObject *given(PyObject *value) {
    if (value == NULL)
        return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(given_type, Py_tp_alloc);
    Given *made = (Given *)make(given_type, 0);
    if (made == NULL)
        Py_DECREF(value);
    else
        made->value = value;
    return (PyObject *)made;
}

static PyObject *given_self(PyObject *self) {
    Py_INCREF(self);
    return self;
}

static PyObject *given_next(Given *self) {
    if (self->value == NULL)
        return NULL; /* StopIteration: awaiting it gives None */
    PyObject *stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, self->value, NULL);
    if (stop != NULL) {
        PyErr_SetObject(PyExc_StopIteration, stop);
        Py_DECREF(stop);
    }
    return NULL;
}

static void given_free(Given *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->value);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *over(void) {
    Py_INCREF(nothing);
    return nothing;
}

/* ---- scopes ---- */

static PyObject *latin(const char *text, size_t size) {
    return PyUnicode_DecodeLatin1(text, (Py_ssize_t)size, NULL);
}

/* A string that is mostly the same in every request: the last one of its kind is kept. */
struct Kept {
    PyObject *text;
    size_t size;
    char bytes[64];
};

static PyObject *kept(struct Kept *last, hob_request *request, int place) {
    size_t size = 0;
    const char *value = lib.indexed(request, place, &size);
    if (value == NULL)
        size = 0;
    if (last->text != NULL && last->size == size && memcmp(last->bytes, value ? value : "", size) == 0) {
        Py_INCREF(last->text);
        return last->text;
    }
    PyObject *text = latin(value ? value : "", size);
    if (text == NULL || size > sizeof last->bytes)
        return text;
    Py_XDECREF(last->text);
    Py_INCREF(text);
    last->text = text;
    last->size = size;
    if (size)
        memcpy(last->bytes, value, size);
    return text;
}

static PyObject *number_of(const char *text, size_t size) {
    long number = 0;
    for (size_t at = 0; at < size && size < 9; at++) {
        if (text[at] < '0' || text[at] > '9')
            return PyLong_FromLong(0);
        number = number * 10 + (text[at] - '0');
    }
    return PyLong_FromLong(number);
}

/* Takes the value over. */
static int put(PyObject *scope, const char *key, PyObject *value) {
    if (value == NULL)
        return -1;
    int failed = PyDict_SetItemString(scope, key, value);
    Py_DECREF(value);
    return failed;
}

static PyObject *pair(PyObject *first, PyObject *second) {
    PyObject *made = first && second ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return made;
}

static PyObject *version_of(hob_request *request) {
    static struct Kept last;
    const char *value = lib.indexed(request, HOB_SERVER_PROTOCOL, NULL);
    if (value == NULL || strcmp(value, "HTTP/1.1") == 0)
        return PyUnicode_FromString("1.1");
    if (strncmp(value, "HTTP/2", 6) == 0 || strncmp(value, "HTTP/3", 6) == 0)
        return latin(value + 5, 1);
    PyObject *whole = kept(&last, request, HOB_SERVER_PROTOCOL);
    PyObject *part = whole == NULL ? NULL : PyUnicode_Substring(whole, 5, 99);
    Py_XDECREF(whole);
    return part;
}

static PyObject *path_of(const char *root, size_t root_bytes, hob_request *request) {
    size_t size = 0;
    const char *info = lib.indexed(request, HOB_PATH_INFO, &size);
    if (root_bytes == 0)
        return PyUnicode_DecodeUTF8(info ? info : "", (Py_ssize_t)size, "replace");
    char *whole = PyMem_Malloc(root_bytes + size);
    if (whole == NULL)
        return PyErr_NoMemory();
    memcpy(whole, root, root_bytes);
    if (size)
        memcpy(whole + root_bytes, info, size);
    PyObject *path = PyUnicode_DecodeUTF8(whole, (Py_ssize_t)(root_bytes + size), "replace");
    PyMem_Free(whole);
    return path;
}

/* The fields as pairs of bytes; the client's port besides. */
static PyObject *fields_of(hob_request *request, PyObject **port) {
    struct Variables all = variables_of(request);
    const char *name, *value;
    size_t name_bytes, value_bytes;
    PyObject *fields = PyList_New(0);
    while (fields != NULL && next_variable(&all, &name, &name_bytes, &value, &value_bytes)) {
        const struct Name *known = name_of(name, name_bytes);
        if (name_bytes == 11 && memcmp(name, "REMOTE_PORT", 11) == 0 && *port == NULL)
            *port = number_of(value, value_bytes);
        PyObject *field = known != NULL ? known->field : NULL;
        if (known == NULL && name_bytes > 5 && memcmp(name, "HTTP_", 5) == 0) {
            /* One of very many names: not kept. */
            field = PyBytes_FromStringAndSize(name + 5, (Py_ssize_t)name_bytes - 5);
            PyObject *lower = field ? PyObject_CallMethod(field, "lower", NULL) : NULL;
            Py_XDECREF(field);
            field = lower ? PyObject_CallMethod(lower, "replace", "y#y#", "_", (Py_ssize_t)1, "-", (Py_ssize_t)1) : NULL;
            Py_XDECREF(lower);
            if (field == NULL) {
                Py_CLEAR(fields);
                break;
            }
        } else if (field == NULL || field == Py_None) {
            continue;
        } else {
            Py_INCREF(field);
        }
        PyObject *one = pair(field, PyBytes_FromStringAndSize(value, (Py_ssize_t)value_bytes));
        if (one == NULL || PyList_Append(fields, one) < 0)
            Py_CLEAR(fields);
        Py_XDECREF(one);
    }
    return fields;
}

static PyObject *client_of(hob_request *request, PyObject *port) {
    static struct Kept last;
    if (lib.indexed(request, HOB_REMOTE_ADDR, NULL) == NULL) {
        Py_XDECREF(port);
        return none();
    }
    return pair(kept(&last, request, HOB_REMOTE_ADDR), port ? port : PyLong_FromLong(0));
}

static PyObject *server_of(hob_request *request) {
    static struct Kept last;
    size_t size = 0;
    const char *port = lib.indexed(request, HOB_SERVER_PORT, &size);
    return pair(kept(&last, request, HOB_SERVER_NAME), number_of(port ? port : "", port ? size : 0));
}

/* scope(base, extensions): the request as ASGI has it, in copies of both. */
static PyObject *call_scope(Call *self, PyObject *words) {
    static struct Kept method, scheme, root;
    PyObject *base, *extensions;
    if (!PyArg_ParseTuple(words, "O!O!", &PyDict_Type, &base, &PyDict_Type, &extensions))
        return NULL;
    hob_request *request = self->exchange->request;
    if (request == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this request has its answer already");
        return NULL;
    }
    size_t root_bytes = 0, uri_bytes = 0, query_bytes = 0;
    const char *root_text = lib.indexed(request, HOB_SCRIPT_NAME, &root_bytes);
    const char *uri = lib.indexed(request, HOB_REQUEST_URI, &uri_bytes);
    const char *query = lib.indexed(request, HOB_QUERY_STRING, &query_bytes);
    const char *mark = uri ? memchr(uri, '?', uri_bytes) : NULL;
    if (mark != NULL)
        uri_bytes = (size_t)(mark - uri);
    bool is_plain = true;
    for (size_t at = 0; root_text && at < root_bytes; at++)
        is_plain &= (unsigned char)root_text[at] < 128;
    PyObject *port = NULL, *scope = PyDict_Copy(base);
    PyObject *more = PyDict_Copy(extensions);
    PyObject *own = PyDict_New();
    if (own == NULL || PyDict_SetItemString(own, "exchange", (PyObject *)self) < 0 || more == NULL ||
        PyDict_SetItem(more, key_hob, own) < 0)
        Py_CLEAR(more);
    Py_XDECREF(own);
    if (scope == NULL || put(scope, "extensions", more) < 0 ||
        put(scope, "http_version", version_of(request)) < 0 ||
        put(scope, "method", kept(&method, request, HOB_REQUEST_METHOD)) < 0 ||
        put(scope, "scheme", kept(&scheme, request, HOB_REQUEST_SCHEME)) < 0 ||
        put(scope, "path", path_of(root_text ? root_text : "", root_text ? root_bytes : 0, request)) < 0 ||
        put(scope, "raw_path", PyBytes_FromStringAndSize(uri, (Py_ssize_t)(uri ? uri_bytes : 0))) < 0 ||
        put(scope, "query_string", PyBytes_FromStringAndSize(query, (Py_ssize_t)(query ? query_bytes : 0))) < 0 ||
        put(scope, "root_path",
            is_plain ? kept(&root, request, HOB_SCRIPT_NAME)
                     : PyUnicode_DecodeUTF8(root_text, (Py_ssize_t)root_bytes, "replace")) < 0 ||
        put(scope, "headers", fields_of(request, &port)) < 0)
        goto failed;
    PyObject *client = client_of(request, port);
    port = NULL;
    if (put(scope, "client", client) < 0 || put(scope, "server", server_of(request)) < 0)
        goto failed;
    return scope;
failed:
    Py_XDECREF(port);
    Py_XDECREF(scope);
    return NULL;
}

/* ---- receive and send ---- */

static PyObject *by_host(Call *self, const char *method, PyObject *message) {
    return message == NULL
               ? PyObject_CallMethod(self->host, method, "O", (PyObject *)self)
               : PyObject_CallMethod(self->host, method, "OO", (PyObject *)self, message);
}

/* receive(): the next message, to be awaited. */
static PyObject *call_receive(Call *self, PyObject *unused) {
    (void)unused;
    Exchange *exchange = self->exchange;
    if (self->is_body_over || exchange->request == NULL || exchange->is_cancelled ||
        lib.content_length(exchange->request) != 0)
        return by_host(self, "receive", NULL);
    self->is_body_over = 1;
    return given(PyDict_Copy(receive_usual));
}

static bool is_word(PyObject *text, PyObject *word) {
    return text == word || (PyUnicode_Check(text) && PyUnicode_Compare(text, word) == 0);
}

static bool is_set(PyObject *message, PyObject *key) {
    PyObject *value = PyDict_GetItemWithError(message, key);
    return value != NULL && value != Py_False;
}

/* 1: done; 0: not that simple; -1: an error. */
static int begin(Call *self, PyObject *message) {
    Exchange *exchange = self->exchange;
    PyObject *number = PyDict_GetItemWithError(message, word_status);
    PyObject *headers = PyDict_GetItemWithError(message, word_headers);
    if (exchange->has_begun || exchange->request == NULL || number == NULL || !PyLong_CheckExact(number) ||
        is_set(message, word_trailers))
        return 0;
    long status = PyLong_AsLong(number);
    if (status < 200 || status > 599 || status == 204 || status == 304) {
        PyErr_Clear();
        return 0;
    }
    struct Lines lines;
    lines.length = 0;
    if (headers != NULL && !PyList_CheckExact(headers))
        return 0;
    for (Py_ssize_t at = 0; headers != NULL && at < PyList_Size(headers); at++) {
        PyObject *one = PyList_GetItem(headers, at), *name, *value;
        if (PyTuple_CheckExact(one) && PyTuple_Size(one) == 2) {
            name = PyTuple_GetItem(one, 0);
            value = PyTuple_GetItem(one, 1);
        } else if (PyList_CheckExact(one) && PyList_Size(one) == 2) {
            name = PyList_GetItem(one, 0);
            value = PyList_GetItem(one, 1);
        } else {
            return 0;
        }
        if (!PyBytes_CheckExact(name) || !PyBytes_CheckExact(value) || !append_field(&lines, name, value))
            return 0;
    }
    if (lib.head(exchange->request, (int)status, lines.text, lines.length) < 0)
        return 0; /* refused by libhob: the host says what it is */
    exchange->has_begun = true;
    return 1;
}

/* The same for a piece of the body. What found no room is for the host: `*rest` is to be awaited. */
static int write_piece(Call *self, PyObject *message, PyObject **rest) {
    Exchange *exchange = self->exchange;
    PyObject *body = PyDict_GetItemWithError(message, key_body);
    bool is_last = !is_set(message, key_more);
    if (!exchange->has_begun || exchange->request == NULL || self->is_head || self->has_trailers ||
        (body != NULL && !PyBytes_CheckExact(body)) || (is_last && self->is_awaited))
        return 0;
    size_t size = body == NULL ? 0 : (size_t)PyBytes_Size(body);
    const char *bytes = body == NULL ? "" : PyBytes_AsString(body);
    int64_t count = size ? lib.write_some(exchange->request, bytes, size) : 0;
    if (count >= 0 && !(is_last && (size_t)count == size)) {
        int code = lib.flush(exchange->request);
        if (code < 0)
            count = code;
    }
    if (count == HOB_AGAIN)
        return 0;
    if (count == HOB_CANCELLED) {
        exchange->is_cancelled = true;
        return 0; /* the host raises it */
    }
    if (count < 0) {
        raise_code((int)count);
        return -1;
    }
    if ((size_t)count < size) {
        *rest = PyObject_CallMethod(self->host, "rest", "Oy#O", (PyObject *)self, bytes + count,
                                    (Py_ssize_t)(size - (size_t)count), is_last ? Py_False : Py_True);
        return *rest == NULL ? -1 : 1;
    }
    if (!is_last)
        return 1;
    PyObject *done = exchange_finished(exchange);
    Py_XDECREF(done);
    return done == NULL ? -1 : 1;
}

/* send(message): to be awaited. */
static PyObject *call_send(Call *self, PyObject *message) {
    PyObject *rest = NULL;
    int code = 0;
    if (PyDict_CheckExact(message) && !self->exchange->is_cancelled) {
        PyObject *kind = PyDict_GetItemWithError(message, word_type);
        if (kind != NULL && is_word(kind, word_body))
            code = write_piece(self, message, &rest);
        else if (kind != NULL && is_word(kind, word_start))
            code = begin(self, message);
    }
    if (code < 0)
        return NULL;
    if (rest != NULL)
        return rest;
    return code ? over() : by_host(self, "send", message);
}

/* callout(text): to be awaited; code and text of the reply. */
static PyObject *call_callout(Call *self, PyObject *text) {
    return by_host(self, "callout", text);
}

static PyObject *call_tell(Call *self, PyObject *text) {
    return PyObject_CallMethod((PyObject *)self->exchange, "tell", "O", text);
}

/* ---- the types ---- */

PyObject *server_accept_call(Server *self, PyObject *words) {
    PyObject *host;
    hob_request *request = NULL;
    if (!PyArg_ParseTuple(words, "O", &host))
        return NULL;
    int code = lib.accept_within(self->server, &request, 0);
    if (code == HOB_AGAIN)
        return none();
    if (code == HOB_NO_MORE)
        return PyBool_FromLong(0);
    if (code < 0)
        return raise_code(code);
    PyObject *exchange = exchange_made(self, request);
    if (exchange == NULL)
        return NULL;
    static allocfunc make;
    if (make == NULL)
        make = (allocfunc)PyType_GetSlot(call_type, Py_tp_alloc);
    Call *call = (Call *)make(call_type, 0);
    if (call == NULL) {
        Py_DECREF(exchange);
        return NULL;
    }
    call->exchange = (Exchange *)exchange;
    Py_INCREF(host);
    call->host = host;
    const char *method = lib.indexed(request, HOB_REQUEST_METHOD, NULL);
    call->is_head = method != NULL && strcmp(method, "HEAD") == 0;
    return (PyObject *)call;
}

static void call_free(Call *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->exchange);
    Py_XDECREF(self->host);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *refuse(PyTypeObject *type, PyObject *words, PyObject *named) {
    (void)type, (void)words, (void)named;
    PyErr_SetString(PyExc_TypeError, "made by the host only");
    return NULL;
}

static PyMethodDef call_methods[] = {
    {"scope", (PyCFunction)call_scope, METH_VARARGS, NULL},
    {"receive", (PyCFunction)call_receive, METH_NOARGS, NULL},
    {"send", (PyCFunction)call_send, METH_O, NULL},
    {"callout", (PyCFunction)call_callout, METH_O, NULL},
    {"tell", (PyCFunction)call_tell, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef call_members[] = {
    {"exchange", T_OBJECT, offsetof(Call, exchange), READONLY, NULL},
    {"is_head", T_BOOL, offsetof(Call, is_head), 0, NULL},
    {"has_trailers", T_BOOL, offsetof(Call, has_trailers), 0, NULL},
    {"is_body_over", T_BOOL, offsetof(Call, is_body_over), 0, NULL},
    {"is_awaited", T_BOOL, offsetof(Call, is_awaited), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot call_slots[] = {
    {Py_tp_doc, "One request and its answer, as ASGI has them."},
    {Py_tp_new, refuse},
    {Py_tp_dealloc, call_free},
    {Py_tp_methods, call_methods},
    {Py_tp_members, call_members},
    {0, NULL},
};

static PyType_Spec call_spec = {
    .name = "hob._native.Call",
    .basicsize = sizeof(Call),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = call_slots,
};

static PyType_Slot given_slots[] = {
    {Py_tp_doc, "What is awaited and there."},
    {Py_tp_new, refuse},
    {Py_tp_dealloc, given_free},
    {Py_am_await, given_self},
    {Py_tp_iter, given_self},
    {Py_tp_iternext, given_next},
    {0, NULL},
};

static PyType_Spec given_spec = {
    .name = "hob._native.Given",
    .basicsize = sizeof(Given),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = given_slots,
};

int prepare_asgi(void) {
    call_type = (PyTypeObject *)PyType_FromSpec(&call_spec);
    given_type = (PyTypeObject *)PyType_FromSpec(&given_spec);
    if (call_type == NULL || given_type == NULL)
        return -1;
    struct {
        PyObject **place;
        const char *text;
    } all[] = {
        {&word_type, "type"},           {&word_start, "http.response.start"},
        {&word_body, "http.response.body"}, {&word_status, "status"},
        {&word_headers, "headers"},     {&word_trailers, "trailers"},
        {&key_body, "body"},            {&key_more, "more_body"},
        {&key_hob, "hob"},
    };
    for (size_t at = 0; at < sizeof all / sizeof all[0]; at++)
        if ((*all[at].place = PyUnicode_InternFromString(all[at].text)) == NULL)
            return -1;
    allocfunc make = (allocfunc)PyType_GetSlot(given_type, Py_tp_alloc);
    nothing = make(given_type, 0);
    receive_usual = Py_BuildValue("{s:s,s:y#,s:O}", "type", "http.request", "body", "", (Py_ssize_t)0,
                                  "more_body", Py_False);
    return nothing == NULL || receive_usual == NULL ? -1 : 0;
}
