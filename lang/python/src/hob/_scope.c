/* The native part's part of the ASGI host: a request as ASGI has it, its scope.
 *
 * As with environments (_environ.c), one scope has much in common with the one before it: it is a copy
 * of a template, in which only what depends on other variables is made anew.
 */
#include "_native.h"

#include <strings.h>

static PyObject *key_method, *key_scheme, *key_version, *key_root, *key_path, *key_raw, *key_query;
static PyObject *key_client, *key_server, *key_headers, *key_extensions, *key_hob, *key_exchange;

/* What of a scope depends on which variables. */
enum {
    METHOD = 1,
    SCHEME = 2,
    VERSION = 4,
    ROOT = 8,
    PATH = 16,
    RAW_PATH = 32,
    QUERY = 64,
    CLIENT = 128,
    SERVER = 256,
};

static const struct Source {
    const char *name;
    unsigned parts;
} sources[] = {
    {"REQUEST_METHOD", METHOD},    {"REQUEST_SCHEME", SCHEME}, {"SERVER_PROTOCOL", VERSION},
    {"SCRIPT_NAME", ROOT | PATH},  {"PATH_INFO", PATH},        {"REQUEST_URI", RAW_PATH},
    {"QUERY_STRING", QUERY},       {"REMOTE_ADDR", CLIENT},    {"REMOTE_PORT", CLIENT},
    {"SERVER_NAME", SERVER},       {"SERVER_PORT", SERVER},
};

/* The scope of the last request, which the next one is a copy of, but for what differs. */
static struct {
    PyObject *base, *scope, *fields;
    struct Last last;
    int16_t field_at[VARIABLE_COUNT_MAX + 1]; /* of a variable, in `fields`; or below zero */
    long port;                                /* the client's */
    unsigned changed;
    bool is_websocket;                        /* what HOB_TUNNEL asks for */
} kept;

static PyObject *latin(const char *text, size_t size) {
    return PyUnicode_DecodeLatin1(text, (Py_ssize_t)size, NULL);
}

static PyObject *utf8(const char *text, size_t size) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
}

/* The value at a place of the index; empty where there is none. */
static const char *value_at(hob_request *request, int place, size_t *size) {
    const char *value = lib.indexed(request, place, size);
    if (value == NULL)
        *size = 0;
    return value ? value : "";
}

static long number_of(const char *text, size_t size) {
    long number = 0;
    for (size_t at = 0; at < size && size < 9; at++) {
        if (text[at] < '0' || text[at] > '9')
            return 0;
        number = number * 10 + (text[at] - '0');
    }
    return number;
}

/* Takes the value over. */
static int put(PyObject *scope, PyObject *key, PyObject *value) {
    if (value == NULL)
        return -1;
    int failed = PyDict_SetItem(scope, key, value);
    Py_DECREF(value);
    return failed;
}

static PyObject *pair(PyObject *first, PyObject *second) {
    PyObject *made = first && second ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return made;
}

static PyObject *version_of(const char *protocol, size_t size) {
    if (size == 0)
        return latin("1.1", 3);
    if (strncmp(protocol, "HTTP/2", 6) == 0 || strncmp(protocol, "HTTP/3", 6) == 0)
        return latin(protocol + 5, 1);
    return size < 5 ? latin("", 0) : latin(protocol + 5, size - 5);
}

static PyObject *path_of(hob_request *request) {
    size_t root_bytes, size;
    const char *root = value_at(request, HOB_SCRIPT_NAME, &root_bytes);
    const char *info = value_at(request, HOB_PATH_INFO, &size);
    if (root_bytes == 0)
        return utf8(info, size);
    char *whole = PyMem_Malloc(root_bytes + size);
    if (whole == NULL)
        return PyErr_NoMemory();
    memcpy(whole, root, root_bytes);
    memcpy(whole + root_bytes, info, size);
    PyObject *path = utf8(whole, root_bytes + size);
    PyMem_Free(whole);
    return path;
}

static PyObject *raw_path_of(hob_request *request) {
    size_t size;
    const char *uri = value_at(request, HOB_REQUEST_URI, &size);
    const char *mark = memchr(uri, '?', size);
    return PyBytes_FromStringAndSize(uri, mark ? mark - uri : (Py_ssize_t)size);
}

static PyObject *client_of(hob_request *request) {
    size_t size;
    const char *address = value_at(request, HOB_REMOTE_ADDR, &size);
    return size == 0 ? none() : pair(latin(address, size), PyLong_FromLong(kept.port));
}

static PyObject *server_of(hob_request *request) {
    size_t size, port_bytes;
    const char *name = value_at(request, HOB_SERVER_NAME, &size);
    const char *port = value_at(request, HOB_SERVER_PORT, &port_bytes);
    return pair(latin(name, size), PyLong_FromLong(number_of(port, port_bytes)));
}

/* Makes the parts anew that have changed. */
static int renew_parts(hob_request *request) {
    PyObject *scope = kept.scope;
    unsigned changed = kept.changed;
    size_t size;
    const char *value;
#define RENEW(part, key, place, made)                                                        \
    if (changed & part) {                                                                    \
        value = value_at(request, place, &size);                                             \
        if (put(scope, key, made) < 0)                                                       \
            return -1;                                                                       \
    }
    RENEW(METHOD, key_method, HOB_REQUEST_METHOD, latin(value, size))
    RENEW(SCHEME, key_scheme, HOB_REQUEST_SCHEME, size ? latin(value, size) : latin("http", 4))
    RENEW(VERSION, key_version, HOB_SERVER_PROTOCOL, version_of(value, size))
    RENEW(ROOT, key_root, HOB_SCRIPT_NAME, utf8(value, size))
    RENEW(QUERY, key_query, HOB_QUERY_STRING, PyBytes_FromStringAndSize(value, (Py_ssize_t)size))
#undef RENEW
    if ((changed & PATH && put(scope, key_path, path_of(request)) < 0) ||
        (changed & RAW_PATH && put(scope, key_raw, raw_path_of(request)) < 0) ||
        (changed & CLIENT && put(scope, key_client, client_of(request)) < 0) ||
        (changed & SERVER && put(scope, key_server, server_of(request)) < 0))
        return -1;
    kept.changed = 0;
    return 0;
}

/* The name of the field that a variable stands for; None if it is none. */
static PyObject *field_name(const struct Variable *one) {
    const struct Name *known = name_of(one->name, one->name_bytes);
    if (known != NULL) {
        Py_INCREF(known->field);
        return known->field;
    }
    if (one->name_bytes <= 5 || memcmp(one->name, "HTTP_", 5) != 0)
        return none();
    /* One of very many names: not kept. */
    PyObject *name = PyBytes_FromStringAndSize(one->name + 5, (Py_ssize_t)one->name_bytes - 5);
    PyObject *lower = name ? PyObject_CallMethod(name, "lower", NULL) : NULL;
    Py_XDECREF(name);
    if (lower == NULL)
        return NULL;
    name = PyObject_CallMethod(lower, "replace", "y#y#", "_", (Py_ssize_t)1, "-", (Py_ssize_t)1);
    Py_DECREF(lower);
    return name;
}

static PyObject *value_of(const struct Variable *one) {
    return PyBytes_FromStringAndSize(one->value, (Py_ssize_t)one->value_bytes);
}

static void look_for_tunnel(const struct Variable *one) {
    if (strcmp(one->name, "HOB_TUNNEL") == 0)
        kept.is_websocket = strcasecmp(one->value, "websocket") == 0;
}

bool wants_websocket(void) {
    return kept.is_websocket;
}

/* A variable has another value: what depends on it is to be made anew. */
static int take_change(void *unused, size_t place, const struct Variable *one) {
    (void)unused;
    for (size_t at = 0; at < sizeof sources / sizeof *sources; at++)
        if (strcmp(sources[at].name, one->name) == 0)
            kept.changed |= sources[at].parts;
    if (strcmp(one->name, "REMOTE_PORT") == 0)
        kept.port = number_of(one->value, one->value_bytes);
    look_for_tunnel(one);
    if (kept.field_at[place] < 0)
        return 0;
    PyObject *field = pair(field_name(one), value_of(one));
    return field == NULL ? -1 : PyList_SetItem(kept.fields, kept.field_at[place], field);
}

/* Everything, for a request that is not like the last one. */
static int renew_scope(PyObject *base, hob_request *request, struct Variables all) {
    struct Variable one;
    size_t place = 0;
    Py_CLEAR(kept.scope);
    Py_CLEAR(kept.fields);
    Py_CLEAR(kept.base);
    kept.scope = PyDict_Copy(base);
    kept.fields = PyList_New(0);
    kept.port = 0;
    kept.is_websocket = false;
    if (kept.scope == NULL || kept.fields == NULL)
        return -1;
    for (; next_variable(&all, &one.name, &one.name_bytes, &one.value, &one.value_bytes); place++) {
        PyObject *name = field_name(&one);
        if (place < VARIABLE_COUNT_MAX)
            kept.field_at[place] = name == Py_None ? -1 : (int16_t)PyList_Size(kept.fields);
        if (strcmp(one.name, "REMOTE_PORT") == 0)
            kept.port = number_of(one.value, one.value_bytes);
        look_for_tunnel(&one);
        if (name == Py_None) {
            Py_DECREF(name);
            continue;
        }
        PyObject *field = pair(name, value_of(&one));
        int failed = field == NULL ? -1 : PyList_Append(kept.fields, field);
        Py_XDECREF(field);
        if (failed)
            return -1;
    }
    kept.changed = ~0U;
    if (renew_parts(request) < 0)
        return -1;
    Py_INCREF(base);
    kept.base = base;
    return 0;
}

/* What `scope["extensions"]` is: a copy, with the request in it. */
static PyObject *extensions_of(PyObject *call, PyObject *extensions) {
    PyObject *more = PyDict_Copy(extensions), *own = PyDict_New();
    if (more == NULL || own == NULL || PyDict_SetItem(own, key_exchange, call) < 0 ||
        PyDict_SetItem(more, key_hob, own) < 0)
        Py_CLEAR(more);
    Py_XDECREF(own);
    return more;
}

/* The request as ASGI has it, in copies of both. */
PyObject *scope_of(PyObject *call, hob_request *request, PyObject *base, PyObject *extensions) {
    struct Variables all = variables_of(request);
    int found = kept.base == base ? tell_changes(&kept.last, all, take_change, NULL) : 0;
    bool is_good = found > 0 ? kept.changed == 0 || renew_parts(request) == 0
                             : found == 0 && renew_scope(base, request, all) == 0;
    if (found == 0 && is_good && !remember(&kept.last, all))
        Py_CLEAR(kept.base); /* as it is for this request, and no other */
    PyObject *scope = is_good ? PyDict_Copy(kept.scope) : NULL;
    if (scope == NULL) {
        Py_CLEAR(kept.base);
        return NULL;
    }
    if (put(scope, key_headers, PyList_GetSlice(kept.fields, 0, PyList_Size(kept.fields))) < 0 ||
        put(scope, key_extensions, extensions_of(call, extensions)) < 0)
        Py_CLEAR(scope);
    return scope;
}

int prepare_scope(void) {
    const struct Word all[] = {
        {&key_method, "method"},     {&key_scheme, "scheme"},   {&key_version, "http_version"},
        {&key_root, "root_path"},    {&key_path, "path"},       {&key_raw, "raw_path"},
        {&key_query, "query_string"}, {&key_client, "client"},  {&key_server, "server"},
        {&key_headers, "headers"},   {&key_hob, "hob"},         {&key_exchange, "exchange"},
        {&key_extensions, "extensions"},
    };
    return make_words(all, sizeof all / sizeof *all);
}
