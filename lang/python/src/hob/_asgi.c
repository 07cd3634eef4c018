/* The native part's part of the ASGI host: runs applications, with the usual `receive` and `send`.
 *
 * What most applications do needs no waiting: the body of a request without one, a head, a body that
 * finds room. That is done here, at once; what is awaited then is over before it begins. Everything
 * else goes to coroutines of Shared in asgi.py. Nothing here waits for a client.
 *
 * So most requests are over when their application has been called once. One task runs them one
 * after the other, each in a context of its own, until an application waits: then the rest of that
 * request is the task's. It is no other request's if the application has left a trace on it.
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

/* A request whose application waits: the rest of it, to be awaited. */
typedef struct {
    PyObject_HEAD
    PyObject *call, *coroutine, *context;
    PyObject *first; /* what it waits for first; NULL once that is known to the task */
} Paused;

static PyTypeObject *call_type, *given_type, *paused_type;
static PyObject *nothing; /* a Given of None */

static PyObject *word_type, *word_start, *word_body, *word_status, *word_headers, *word_trailers;
static PyObject *word_receive, *word_send, *word_run, *word_copy, *word_throw, *word_close;
static PyObject *word_callbacks, *word_must_cancel, *word_get_name, *key_body, *key_more, *key_state;
static PyObject *coroutine_type, *coroutine_send, *count_weak;
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
    return finish_at_once(exchange) ? 1 : -1;
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

/* ---- the rest of a request ---- */

static PyObject *paused_next(Paused *self) {
    PyObject *first = self->first;
    self->first = NULL;
    if (first != NULL)
        return first;
    return PyObject_CallMethodObjArgs(
        self->context, word_run, coroutine_send, self->coroutine, Py_None, NULL);
}

/* throw(type, value, traceback): what the task is told, such as that it is cancelled. */
static PyObject *paused_throw(Paused *self, PyObject *words) {
    Py_CLEAR(self->first);
    PyObject *throw = PyObject_GetAttr(self->coroutine, word_throw);
    PyObject *first = throw ? PyTuple_Pack(1, throw) : NULL, *run = NULL, *yielded = NULL;
    PyObject *all = first ? PySequence_Concat(first, words) : NULL;
    if (all != NULL)
        run = PyObject_GetAttr(self->context, word_run);
    if (run != NULL)
        yielded = PyObject_CallObject(run, all);
    Py_XDECREF(run);
    Py_XDECREF(all);
    Py_XDECREF(first);
    Py_XDECREF(throw);
    return yielded;
}

static PyObject *paused_close(Paused *self, PyObject *unused) {
    (void)unused;
    Py_CLEAR(self->first);
    PyObject *close = PyObject_GetAttr(self->coroutine, word_close);
    PyObject *closed =
        close ? PyObject_CallMethodObjArgs(self->context, word_run, close, NULL) : NULL;
    Py_XDECREF(close);
    return closed;
}

static void paused_free(Paused *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->call);
    Py_XDECREF(self->coroutine);
    Py_XDECREF(self->context);
    Py_XDECREF(self->first);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* Takes all three over. */
static PyObject *paused(PyObject *call, PyObject *coroutine, PyObject *context, PyObject *first) {
    allocfunc make = (allocfunc)PyType_GetSlot(paused_type, Py_tp_alloc);
    Paused *made = (Paused *)make(paused_type, 0);
    if (made == NULL) {
        Py_DECREF(coroutine);
        Py_DECREF(context);
        Py_DECREF(first);
        return NULL;
    }
    Py_INCREF(call);
    made->call = call;
    made->coroutine = coroutine;
    made->context = context;
    made->first = first;
    return (PyObject *)made;
}

/* ---- running applications ---- */

/* What all requests of a turn have in common. */
struct Turn {
    PyObject *host, *application, *base, *extensions, *state, *context, *task;
    PyObject *name; /* the task's, and how many refer to it before an application has run */
    Py_ssize_t references, weak_references;
};

static Py_ssize_t weak_references_to(PyObject *task) {
    PyObject *count = PyObject_CallFunctionObjArgs(count_weak, task, NULL);
    Py_ssize_t number = count ? PyLong_AsSsize_t(count) : -1;
    Py_XDECREF(count);
    return number;
}

static bool is_false(PyObject *object, PyObject *attribute) {
    PyObject *value = PyObject_GetAttr(object, attribute);
    int is_true = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return is_true == 0;
}

/* Whether an application has left the task as it was: nobody keeps it, waits for its end, has
 * cancelled or renamed it. */
static bool is_untouched(const struct Turn *turn) {
    PyObject *task = turn->task;
    if (Py_REFCNT(task) != turn->references || weak_references_to(task) != turn->weak_references ||
        !is_false(task, word_callbacks) || !is_false(task, word_must_cancel))
        return false;
    PyObject *name = PyObject_CallMethodObjArgs(task, word_get_name, NULL);
    Py_XDECREF(name);
    return name == turn->name;
}

static Call *call_made(Server *self, hob_request *request, PyObject *host) {
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
    return call;
}

/* The application's coroutine for a request. */
static PyObject *coroutine_of(Call *call, const struct Turn *turn) {
    PyObject *scope =
        scope_of((PyObject *)call, call->exchange->request, turn->base, turn->extensions);
    PyObject *state = scope && turn->state != Py_None ? PyDict_Copy(turn->state) : NULL;
    if (scope == NULL || (turn->state != Py_None && state == NULL) ||
        (state != NULL && PyDict_SetItem(scope, key_state, state) < 0)) {
        Py_XDECREF(state);
        Py_XDECREF(scope);
        return NULL;
    }
    Py_XDECREF(state);
    if (wants_websocket()) {
        PyObject *socket = PyObject_CallMethod(turn->host, "websocket", "OO", (PyObject *)call, scope);
        Py_DECREF(scope);
        return socket;
    }
    PyObject *receive = PyObject_GetAttr((PyObject *)call, word_receive);
    PyObject *send = PyObject_GetAttr((PyObject *)call, word_send);
    PyObject *made = NULL;
    if (receive != NULL && send != NULL)
        made = PyObject_CallFunctionObjArgs(turn->application, scope, receive, send, NULL);
    Py_XDECREF(receive);
    Py_XDECREF(send);
    Py_DECREF(scope);
    if (made == NULL || (PyObject *)Py_TYPE(made) == coroutine_type)
        return made;
    PyObject *wrapped = PyObject_CallMethod(turn->host, "awaiting", "O", made);
    Py_DECREF(made);
    return wrapped;
}

/* An application has ended, or raised: Shared does what is left to do. -1: go no further. */
static int end_call(Call *call, PyObject *host) {
    PyObject *type = NULL, *error = NULL, *trace = NULL;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_StopIteration)) {
        PyErr_Fetch(&type, &error, &trace);
        PyErr_NormalizeException(&type, &error, &trace);
        if (trace != NULL)
            PyException_SetTraceback(error, trace);
    } else {
        PyErr_Clear();
        if (call->exchange->is_over && !call->is_awaited)
            return 0;
    }
    PyObject *raise =
        PyObject_CallMethod(host, "ended", "OO", (PyObject *)call, error ? error : Py_None);
    bool is_raised = raise == Py_True;
    int code = raise == NULL || is_raised ? -1 : 0;
    Py_XDECREF(raise);
    if (is_raised) {
        PyErr_Restore(type, error, trace);
        return -1;
    }
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return code;
}

/* Runs an application until it ends or waits. 1: it waits, for `*rest`; 0: done; -1: an error. */
static int run_call(Call *call, const struct Turn *turn, PyObject **rest) {
    PyObject *coroutine = coroutine_of(call, turn), *context = NULL, *yielded = NULL;
    if (coroutine != NULL)
        context = PyObject_CallMethodObjArgs(turn->context, word_copy, NULL);
    if (context != NULL)
        yielded = PyObject_CallMethodObjArgs(
            context, word_run, coroutine_send, coroutine, Py_None, NULL);
    if (yielded != NULL) {
        *rest = paused((PyObject *)call, coroutine, context, yielded);
        return *rest == NULL ? -1 : 1;
    }
    int code = end_call(call, turn->host);
    Py_XDECREF(context);
    Py_XDECREF(coroutine);
    return code;
}

/* serve(host, application, base, extensions, state, context, task, most): answers requests that are
 * here, at most so many. None when no more are, False when no more will come; what is to be awaited
 * when one has to wait; True when the task is to end. */
PyObject *server_serve(Server *self, PyObject *words) {
    struct Turn turn;
    PyObject *rest = NULL;
    int most, code = 0;
    if (!PyArg_ParseTuple(words, "OOO!O!OOOi", &turn.host, &turn.application, &PyDict_Type, &turn.base,
                          &PyDict_Type, &turn.extensions, &turn.state, &turn.context, &turn.task, &most))
        return NULL;
    turn.name = PyObject_CallMethodObjArgs(turn.task, word_get_name, NULL);
    Py_XDECREF(turn.name); /* the task has it, too: compared, never used */
    turn.references = Py_REFCNT(turn.task);
    turn.weak_references = weak_references_to(turn.task);
    if (turn.name == NULL || turn.weak_references < 0)
        return NULL;
    while (most-- > 0) {
        hob_request *request = NULL;
        code = lib.accept_within(self->server, &request, 0);
        if (code == HOB_AGAIN)
            return none();
        if (code < 0)
            return raise_code(code);
        if (code == HOB_NO_MORE)
            return PyBool_FromLong(0);
        Call *call = call_made(self, request, turn.host);
        if (call == NULL)
            return NULL;
        code = run_call(call, &turn, &rest);
        Py_DECREF(call);
        if (code < 0)
            return NULL;
        if (rest != NULL)
            return rest;
        if (!is_untouched(&turn))
            break;
    }
    return PyErr_Occurred() ? NULL : PyBool_FromLong(1);
}

/* ---- the types ---- */

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

static PyMethodDef paused_methods[] = {
    {"throw", (PyCFunction)paused_throw, METH_VARARGS, NULL},
    {"close", (PyCFunction)paused_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef paused_members[] = {
    {"call", T_OBJECT, offsetof(Paused, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot paused_slots[] = {
    {Py_tp_doc, "The rest of a request, to be awaited."},
    {Py_tp_new, refuse},
    {Py_tp_dealloc, paused_free},
    {Py_tp_methods, paused_methods},
    {Py_tp_members, paused_members},
    {Py_am_await, given_self},
    {Py_tp_iter, given_self},
    {Py_tp_iternext, paused_next},
    {0, NULL},
};

static PyType_Spec paused_spec = {
    .name = "hob._native.Paused",
    .basicsize = sizeof(Paused),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = paused_slots,
};

static PyObject *found_in(const char *module_name, const char *name) {
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return found;
}

int prepare_asgi(void) {
    call_type = (PyTypeObject *)PyType_FromSpec(&call_spec);
    given_type = (PyTypeObject *)PyType_FromSpec(&given_spec);
    paused_type = (PyTypeObject *)PyType_FromSpec(&paused_spec);
    coroutine_type = found_in("types", "CoroutineType");
    coroutine_send = coroutine_type ? PyObject_GetAttrString(coroutine_type, "send") : NULL;
    count_weak = found_in("_weakref", "getweakrefcount");
    const struct Word all[] = {
        {&word_type, "type"},           {&word_start, "http.response.start"},
        {&word_body, "http.response.body"}, {&word_status, "status"},
        {&word_headers, "headers"},     {&word_trailers, "trailers"},
        {&word_receive, "receive"},     {&word_send, "send"},
        {&word_run, "run"},             {&word_copy, "copy"},
        {&word_throw, "throw"},         {&word_close, "close"},
        {&word_callbacks, "_callbacks"}, {&word_must_cancel, "_must_cancel"},
        {&word_get_name, "get_name"},   {&key_body, "body"},
        {&key_more, "more_body"},       {&key_state, "state"},
    };
    if (call_type == NULL || given_type == NULL || paused_type == NULL || coroutine_send == NULL ||
        count_weak == NULL || make_words(all, sizeof all / sizeof *all) < 0 || prepare_scope() < 0)
        return -1;
    allocfunc make = (allocfunc)PyType_GetSlot(given_type, Py_tp_alloc);
    nothing = make(given_type, 0);
    receive_usual = Py_BuildValue("{s:s,s:y#,s:O}", "type", "http.request", "body", "", (Py_ssize_t)0,
                                  "more_body", Py_False);
    return nothing == NULL || receive_usual == NULL ? -1 : 0;
}
