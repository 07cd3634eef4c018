/* The end of a child: what an interpreter does when a script has run, in C for as long as it is
 * usual. To take the interpreter apart, as it does then, would write to all its memory.
 */
#include "_warm.h"

/* The script of this child, and how many containers there were when it began. */
static const struct script *running;
static long fresh_count[3];

static bool is_true(PyObject *answer) {
    int is = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (is < 0)
        PyErr_Clear();
    return is != 0;
}

long number_of(PyObject *answer) {
    long number = answer == NULL ? -1 : PyLong_AsLong(answer);
    Py_XDECREF(answer);
    if (PyErr_Occurred())
        PyErr_Clear();
    return number;
}

/* Whether threads are to be waited for, or someone wants to be told before. */
static bool has_threads(void) {
    PyObject *threading = PyDict_GetItemWithError(given.modules, word.threading);
    if (threading == NULL)
        return PyErr_Occurred() != NULL;
    return number_of(PyObject_CallObject(given.thread_count, NULL)) != 0 ||
           is_true(PyObject_GetAttr(threading, word._threading_atexits));
}

/* Flushes a stream if it is open; false when it could not be written, with the exception. */
static bool flush_stream(PyObject *stream) {
    PyObject *closed = PyObject_GetAttr(stream, word.closed);
    if (closed == NULL)
        PyErr_Clear();
    if (closed != NULL && is_true(closed))
        return true;
    PyObject *done = PyObject_CallMethodObjArgs(stream, word.flush, NULL);
    Py_XDECREF(done);
    return done != NULL;
}

/* As the interpreter does twice at its end. False when standard output could not be written. */
static bool flush_streams(void) {
    PyObject *names[2] = {word.stdout, word.stderr};
    bool flushed = true;
    for (int at = 0; at < 2; at++) {
        PyObject *stream = PyDict_GetItemWithError(given.system, names[at]);
        if (stream == NULL || stream == Py_None)
            continue;
        Py_INCREF(stream);
        if (!flush_stream(stream) && at == 0) {
            flushed = false;
            PyObject *type, *error, *trace;
            PyErr_Fetch(&type, &error, &trace);
            PyErr_NormalizeException(&type, &error, &trace);
            Py_XDECREF(PyObject_CallFunctionObjArgs(given.unflushed, error, stream, NULL));
        }
        PyErr_Clear();
        Py_DECREF(stream);
    }
    return flushed;
}

/* As the interpreter does when a script has ended, before all else. What is wrong shows later. */
static void flush_first(void) {
    PyObject *names[2] = {word.stderr, word.stdout};
    for (int at = 0; at < 2; at++) {
        PyObject *stream = PyDict_GetItemWithError(given.system, names[at]);
        if (stream == NULL)
            continue;
        Py_INCREF(stream);
        Py_XDECREF(PyObject_CallMethodObjArgs(stream, word.flush, NULL));
        PyErr_Clear();
        Py_DECREF(stream);
    }
}

/* The streams that the script has put in place of the interpreter's go. */
static void restore_streams(void) {
    PyObject *names[3] = {word.stdin, word.stdout, word.stderr};
    PyObject *first[3] = {word.__stdin__, word.__stdout__, word.__stderr__};
    for (int at = 0; at < 3; at++) {
        PyObject *stream = PyDict_GetItemWithError(given.system, first[at]);
        if (stream == NULL || stream == PyDict_GetItemWithError(given.system, names[at]))
            continue;
        Py_INCREF(stream);
        if (PyDict_SetItem(given.system, names[at], stream) < 0)
            PyErr_Clear();
        Py_DECREF(stream);
    }
}

static bool counts_garbage(long count[3]) {
    PyObject *counts = PyObject_CallObject(given.count, NULL);
    bool is_good =
        counts != NULL && PyArg_ParseTuple(counts, "lll", &count[0], &count[1], &count[2]);
    Py_XDECREF(counts);
    PyErr_Clear();
    return is_good;
}

/* Collects what the script has made: the youngest, unless some of it has become older. */
static void collect(void) {
    long count[3] = {0, 1, 1};
    counts_garbage(count);
    Py_XDECREF(PyObject_CallFunction(given.collect, "i", count[1] == 0 && count[2] == 0 ? 0 : 2));
    PyErr_Clear();
}

/* Whether letting go of a value ends nothing: it is a module that stays, or something plain. */
static bool is_plain(PyObject *value) {
    if (PyDict_CheckExact(value) && PyDict_Size(value) == 0)
        return true;
    if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
        PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) || PyFloat_CheckExact(value))
        return true;
    if (!PyModule_CheckExact(value))
        return false;
    PyObject *module;
    Py_ssize_t place = 0;
    while (PyDict_Next(given.modules, &place, NULL, &module)) {
        if (module == value)
            return true;
    }
    return false;
}

/* Lets go of what names of a module hold, those that are private first. What is plain stays, and
 * the loader, which is ours: to count one reference less would copy its memory. */
static void clear(PyObject *names, PyObject *loader) {
    if (names == NULL || !PyDict_CheckExact(names))
        return;
    for (int is_second = 0; is_second < 2; is_second++) {
        PyObject *name, *value;
        Py_ssize_t place = 0;
        while (PyDict_Next(names, &place, &name, &value)) {
            if (is_plain(value) || value == loader || !PyUnicode_Check(name))
                continue;
            Py_UCS4 first = PyUnicode_GetLength(name) > 0 ? PyUnicode_ReadChar(name, 0) : 0;
            Py_UCS4 second = PyUnicode_GetLength(name) > 1 ? PyUnicode_ReadChar(name, 1) : 0;
            bool is_private = first == '_' && second != '_';
            if (is_second ? PyUnicode_CompareWithASCIIString(name, "__builtins__") == 0
                          : !is_private)
                continue;
            Py_INCREF(name);
            if (PyDict_SetItem(names, name, Py_None) < 0)
                PyErr_Clear();
            Py_DECREF(name);
        }
    }
}

/* Clears the modules that the script has loaded, the last one first. */
static void clear_modules(void) {
    Py_ssize_t count = PyDict_Size(given.modules), place = 0;
    Py_ssize_t new = count - module_count;
    if (new <= 0)
        return;
    PyObject *module, *list = PyList_New(0);
    for (Py_ssize_t at = 0; list != NULL && PyDict_Next(given.modules, &place, NULL, &module);
         at++) {
        if (at >= module_count && PyModule_Check(module) && PyList_Insert(list, 0, module) < 0)
            PyErr_Clear();
    }
    for (Py_ssize_t at = 0; list != NULL && at < PyList_Size(list); at++)
        clear(PyModule_GetDict(PyList_GetItem(list, at)), NULL);
    Py_XDECREF(list);
    PyErr_Clear();
}

/* Lets go of what the script holds, so that its files are written and its objects finalized. What
 * was there before the script is not looked at. */
static void forget(void) {
    long count[3];
    /* Nothing is there to be collected but what can be in a circle, which is counted. What is not
     * seen by that is not finalized at the end, as the language has it. */
    bool collects = is_true(PyObject_CallObject(given.is_collecting, NULL)) &&
                    (!counts_garbage(count) || memcmp(count, fresh_count, sizeof count) != 0);
    if (collects)
        collect();
    restore_streams();
    clear_modules();
    clear(given.names, running->loader);
    if (collects)
        collect();
    /* Files that neither of that has closed: some module that was here before has them. Kernels
     * before 6.2 do not tell how many there are. */
    struct stat open;
    if (stat("/proc/self/fd", &open) < 0 || open.st_size == 0 || open.st_size > descriptor_count) {
        Py_XDECREF(PyObject_CallObject(given.flush_files, NULL));
        PyErr_Clear();
    }
}

/* Ends as the interpreter does, except for taking itself apart. */
static __attribute__((noreturn)) void leave(long code) {
    if (has_threads()) {
        Py_XDECREF(PyObject_CallFunction(given.leave, "l", code));
        _exit(1);
    }
    if (number_of(PyObject_CallObject(given.exit_count, NULL)) != 0) {
        Py_XDECREF(PyObject_CallObject(given.exit_run, NULL));
        PyErr_Clear();
    }
    bool flushed = flush_streams();
    forget();
    flushed = flush_streams() && flushed;
    _exit(flushed ? (int)(code & 0xff) : 120);
}

void leave_run(void) {
    flush_first();
    leave(0);
}

/* The exit code of SystemExit, when there is nothing to say about it. */
static bool is_silent_exit(PyObject *error, long *code) {
    if (!PyErr_GivenExceptionMatches(error, PyExc_SystemExit))
        return false;
    PyObject *value = PyObject_GetAttr(error, word.code);
    bool is_silent = value == Py_None || (value != NULL && PyLong_Check(value));
    *code = value == NULL || value == Py_None ? 0 : PyLong_AsLong(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        is_silent = false;
    }
    Py_XDECREF(value);
    return is_silent;
}

void leave_failed(bool is_ours) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (!is_ours && trace != NULL)
        PyException_SetTraceback(error, trace);
    flush_first();
    long code;
    if (is_silent_exit(error, &code)) {
        Py_XDECREF(trace);
        Py_XDECREF(error);
        Py_XDECREF(type);
        leave(code);
    }
    Py_XDECREF(trace);
    Py_XDECREF(type);
    Py_XDECREF(PyObject_CallFunctionObjArgs(given.fail, error, NULL));
    PyErr_Print();
    _exit(1);
}

void note_begin(const struct script *script) {
    running = script;
    counts_garbage(fresh_count);
}
