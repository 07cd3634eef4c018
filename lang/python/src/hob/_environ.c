/* Variables of requests as dicts and strings.
 *
 * One request has much in common with the one before it. So its dict is a copy of a template, that of
 * the last request, in which only what differs is set; and names are made once, kept with their hash.
 */
#include "_native.h"

#define NAME_COUNT 1024
#define NAME_COUNT_MAX 768
#define NAME_BYTES_MAX 64
#define KEPT_BYTES_MAX 16384

static struct Name names[NAME_COUNT];
static size_t name_count;

/* ---- names ---- */

/* The field that a variable stands for, as HTTP writes it in lower case; None if it is none. */
static PyObject *field_of(const char *text, size_t length) {
    size_t from = 0;
    char field[NAME_BYTES_MAX];
    if (length > 5 && memcmp(text, "HTTP_", 5) == 0)
        from = 5;
    else if (strcmp(text, "CONTENT_TYPE") != 0 && strcmp(text, "CONTENT_LENGTH") != 0)
        return none();
    if (length > sizeof field)
        return none();
    for (size_t at = from; at < length; at++) {
        char letter = text[at];
        field[at - from] = letter == '_' ? '-' : letter >= 'A' && letter <= 'Z' ? (char)(letter + 32) : letter;
    }
    return PyBytes_FromStringAndSize(field, (Py_ssize_t)(length - from));
}

/* What is known of a name; NULL without an error when it is not kept. */
const struct Name *name_of(const char *text, size_t length) {
    size_t place = 5381;
    if (length > NAME_BYTES_MAX)
        return NULL;
    for (size_t at = 0; at < length; at++)
        place = place * 33 + (unsigned char)text[at];
    for (;; place++) {
        place %= NAME_COUNT;
        if (names[place].object == NULL)
            break;
        if (names[place].length == length && memcmp(names[place].text, text, length) == 0)
            return &names[place];
    }
    if (name_count == NAME_COUNT_MAX)
        return NULL;
    PyObject *object = PyUnicode_DecodeLatin1(text, (Py_ssize_t)length, NULL);
    PyObject *field = field_of(text, length);
    if (object == NULL || field == NULL) {
        Py_XDECREF(object);
        Py_XDECREF(field);
        PyErr_Clear();
        return NULL;
    }
    PyUnicode_InternInPlace(&object);
    names[place].object = object;
    names[place].field = field;
    names[place].length = length;
    memcpy(names[place].text, text, length);
    name_count++;
    return &names[place];
}

/* ---- variables ---- */

bool next_variable(struct Variables *all, const char **name, size_t *name_bytes, const char **value,
                   size_t *value_bytes) {
    if (all->at >= all->stop)
        return false;
    *name = all->at;
    *name_bytes = strlen(all->at);
    *value = *name + *name_bytes + 1;
    *value_bytes = strlen(*value);
    all->at = *value + *value_bytes + 1;
    return true;
}

struct Variables variables_of(hob_request *request) {
    size_t length = 0;
    const char *start = lib.variables(request, &length);
    struct Variables all = {start, start + length};
    return all;
}

static int set(PyObject *into, const char *name, size_t name_bytes, const char *value, size_t value_bytes) {
    const struct Name *known = name_of(name, name_bytes);
    PyObject *key = known != NULL ? known->object : NULL;
    if (key != NULL)
        Py_INCREF(key);
    else
        key = PyUnicode_DecodeLatin1(name, (Py_ssize_t)name_bytes, NULL);
    PyObject *text =
        key == NULL ? NULL : PyUnicode_DecodeLatin1(value, (Py_ssize_t)value_bytes, NULL);
    int failed = text == NULL ? -1 : PyDict_SetItem(into, key, text);
    Py_XDECREF(key);
    Py_XDECREF(text);
    return failed;
}

static int set_all(PyObject *into, struct Variables all) {
    const char *name, *value;
    size_t name_bytes, value_bytes;
    while (next_variable(&all, &name, &name_bytes, &value, &value_bytes))
        if (set(into, name, name_bytes, value, value_bytes) < 0)
            return -1;
    return 0;
}

/* Sets what differs. 1: done, 0: the names are others, -1: an error. */
static int set_changed(struct Template *template, struct Variables all) {
    struct Variables kept = {template->kept, template->kept + template->length};
    const char *name, *value, *old_name, *old_value;
    size_t name_bytes, value_bytes, old_name_bytes, old_value_bytes;
    while (next_variable(&all, &name, &name_bytes, &value, &value_bytes)) {
        if (!next_variable(&kept, &old_name, &old_name_bytes, &old_value, &old_value_bytes) ||
            name_bytes != old_name_bytes || memcmp(name, old_name, name_bytes) != 0)
            return 0;
        if (value_bytes == old_value_bytes && memcmp(value, old_value, value_bytes) == 0)
            continue;
        if (set(template->environ, name, name_bytes, value, value_bytes) < 0)
            return -1;
    }
    return kept.at == kept.stop;
}

static bool keep(struct Template *template, struct Variables all) {
    size_t length = (size_t)(all.stop - all.at);
    if (length > KEPT_BYTES_MAX)
        return false;
    if (length > template->room) {
        char *room = PyMem_Realloc(template->kept, length);
        if (room == NULL)
            return false;
        template->kept = room;
        template->room = length;
    }
    memcpy(template->kept, all.at, length);
    template->length = length;
    return true;
}

static int renew(struct Template *template, struct Variables all, PyObject *base) {
    Py_CLEAR(template->environ);
    Py_CLEAR(template->base);
    PyObject *environ = PyDict_Copy(base);
    if (environ == NULL || set_all(environ, all) < 0) {
        Py_XDECREF(environ);
        return -1;
    }
    Py_INCREF(base);
    template->base = base;
    template->environ = environ;
    return 0;
}

/* The variables in a copy of `base`. */
PyObject *environ_of_template(struct Template *template, hob_request *request, PyObject *base) {
    struct Variables all = variables_of(request);
    size_t length = (size_t)(all.stop - all.at);
    int found = 0;
    if (template->environ != NULL && template->base == base) {
        if (length == template->length && memcmp(all.at, template->kept, length) == 0)
            return PyDict_Copy(template->environ);
        found = set_changed(template, all);
    }
    if (found < 0 || (found == 0 && renew(template, all, base) < 0)) {
        Py_CLEAR(template->environ);
        return NULL;
    }
    PyObject *environ = PyDict_Copy(template->environ);
    if (!keep(template, all))
        Py_CLEAR(template->environ);
    return environ;
}

/* ---- fields of answers ---- */

/* The bytes of a string, in latin-1; `*owner` is to be released after their use. NULL when it is
 * none, or has other characters. */
static const char *bytes_of(PyObject *text, Py_ssize_t *size, PyObject **owner) {
    *owner = NULL;
    if (PyBytes_CheckExact(text)) {
        *size = PyBytes_Size(text);
        return PyBytes_AsString(text);
    }
    if (!PyUnicode_Check(text))
        return NULL;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, size);
    if (bytes != NULL && *size == PyUnicode_GetLength(text))
        return bytes; /* ASCII: the string's own bytes */
    PyErr_Clear();
    *owner = PyUnicode_AsLatin1String(text);
    if (*owner == NULL) {
        PyErr_Clear();
        return NULL;
    }
    *size = PyBytes_Size(*owner);
    return PyBytes_AsString(*owner);
}

static bool append(struct Lines *lines, PyObject *text, const char *after) {
    PyObject *owner;
    Py_ssize_t size;
    const char *bytes = bytes_of(text, &size, &owner);
    size_t count = (size_t)size, more = strlen(after);
    bool fits = bytes != NULL && lines->length + count + more <= sizeof lines->text;
    /* No byte that could forge a line. */
    for (size_t at = 0; fits && at < count; at++)
        fits = bytes[at] != '\n' && bytes[at] != '\r' && bytes[at] != '\0';
    if (fits) {
        memcpy(lines->text + lines->length, bytes, count);
        memcpy(lines->text + lines->length + count, after, more);
        lines->length += count + more;
    }
    Py_XDECREF(owner);
    return fits;
}

bool append_field(struct Lines *lines, PyObject *name, PyObject *value) {
    return append(lines, name, ": ") && append(lines, value, "\n");
}
