/* Variables of requests as dicts and strings.
 *
 * One request has much in common with the one before it. So its dict is a copy of a template, that of
 * the last request, in which only what differs is set; and names are made once, kept with their hash.
 * What differs lies between the bytes that both begin with and those that both end with.
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

int make_words(const struct Word *words, size_t count) {
    for (size_t at = 0; at < count; at++)
        if ((*words[at].place = PyUnicode_InternFromString(words[at].text)) == NULL)
            return -1;
    return 0;
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

/* ---- what differs from the last request ---- */

/* How many bytes both have in common at their beginning. */
static size_t common_start(const char *one, const char *other, size_t most) {
    size_t at = 0;
    for (uint64_t left, right; at + sizeof left <= most; at += sizeof left) {
        memcpy(&left, one + at, sizeof left);
        memcpy(&right, other + at, sizeof right);
        if (left != right)
            break;
    }
    while (at < most && one[at] == other[at])
        at++;
    return at;
}

/* The same at their end; `one` and `other` point behind it. */
static size_t common_end(const char *one, const char *other, size_t most) {
    size_t count = 0;
    for (uint64_t left, right; count + sizeof left <= most; count += sizeof left) {
        memcpy(&left, one - count - sizeof left, sizeof left);
        memcpy(&right, other - count - sizeof right, sizeof right);
        if (left != right)
            break;
    }
    while (count < most && one[-1 - (ptrdiff_t)count] == other[-1 - (ptrdiff_t)count])
        count++;
    return count;
}

/* The last of the variables that begin at or before a byte. */
static size_t variable_at(const struct Last *last, size_t byte) {
    size_t from = 0, to = last->count;
    while (to - from > 1) {
        size_t middle = (from + to) / 2;
        if (last->starts[middle] <= byte)
            from = middle;
        else
            to = middle;
    }
    return from;
}

/* Keeps a request's variables, and where each begins; false when they are too many or too long. */
bool remember(struct Last *last, struct Variables all) {
    size_t length = (size_t)(all.stop - all.at), count = 0;
    const char *name, *value, *begin = all.at;
    size_t name_bytes, value_bytes;
    last->count = 0;
    if (length > last->room) {
        char *room = length > KEPT_BYTES_MAX ? NULL : PyMem_Realloc(last->bytes, length);
        if (room == NULL)
            return false;
        last->bytes = room;
        last->room = length;
    }
    memcpy(last->bytes, all.at, length);
    last->length = length;
    for (; all.at < all.stop; next_variable(&all, &name, &name_bytes, &value, &value_bytes)) {
        if (count == VARIABLE_COUNT_MAX)
            return false;
        last->starts[count++] = (uint32_t)(all.at - begin);
    }
    last->count = count;
    return count != 0;
}

/* Tells of every value that differs from the last request's, and remembers this one. 1: done, 0: the
 * names are others, or none are remembered; -1: an error. */
int tell_changes(struct Last *last, struct Variables all, change *tell, void *whom) {
    const char *begin = all.at, *old_stop = last->bytes + last->length;
    size_t length = (size_t)(all.stop - all.at);
    if (last->count == 0 || length > last->room)
        return 0;
    size_t most = length < last->length ? length : last->length;
    size_t start = common_start(begin, last->bytes, most);
    if (start == length && start == last->length)
        return 1;
    size_t end = common_end(all.stop, old_stop, most - start);
    size_t at = variable_at(last, start);
    struct Variables old = {last->bytes + last->starts[at], old_stop};
    struct Variable one, other;
    all.at += last->starts[at];
    /* Until as many bytes follow in both, all of them the same. */
    for (; (size_t)(all.stop - all.at) > end || all.stop - all.at != old_stop - old.at; at++) {
        last->starts[at] = (uint32_t)(all.at - begin);
        if (!next_variable(&all, &one.name, &one.name_bytes, &one.value, &one.value_bytes) ||
            !next_variable(&old, &other.name, &other.name_bytes, &other.value, &other.value_bytes) ||
            one.name_bytes != other.name_bytes || memcmp(one.name, other.name, one.name_bytes) != 0)
            return 0;
        if (one.value_bytes == other.value_bytes && memcmp(one.value, other.value, one.value_bytes) == 0)
            continue;
        if (tell(whom, at, &one) < 0)
            return -1;
    }
    if (length == last->length) {
        memcpy(last->bytes + start, begin + start, length - start - end);
        return 1;
    }
    for (; at < last->count; at++)
        last->starts[at] += (uint32_t)(length - last->length);
    memcpy(last->bytes + start, begin + start, length - start);
    last->length = length;
    return 1;
}

/* ---- environments ---- */

static int set_changed(void *template, size_t place, const struct Variable *one) {
    (void)place;
    struct Template *into = template;
    return set(into->environ, one->name, one->name_bytes, one->value, one->value_bytes);
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
    bool is_kept = template->environ != NULL && template->base == base;
    int found = is_kept ? tell_changes(&template->last, all, set_changed, template) : 0;
    if (found == 1)
        return PyDict_Copy(template->environ);
    if (found < 0 || renew(template, all, base) < 0) {
        Py_CLEAR(template->environ);
        return NULL;
    }
    PyObject *environ = PyDict_Copy(template->environ);
    if (!remember(&template->last, all))
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

/* Whether one of the bytes ends a line, or is NUL. */
static bool could_forge(const char *bytes, size_t count) {
    return memchr(bytes, '\n', count) || memchr(bytes, '\r', count) || memchr(bytes, '\0', count);
}

static bool append(struct Lines *lines, PyObject *text, const char *after) {
    PyObject *owner;
    Py_ssize_t size = 0;
    const char *bytes = bytes_of(text, &size, &owner);
    size_t count = (size_t)size, more = strlen(after);
    bool fits = bytes != NULL && lines->length + count + more <= sizeof lines->text &&
                !could_forge(bytes, count);
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
