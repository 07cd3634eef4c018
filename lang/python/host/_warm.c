/* The loop of a warm host of Python, and what a child runs of ours: in C, because an interpreter that
 * runs a line of Python writes to the pages of all that the line names, which are copied then, in
 * the host after each fork and in each child. What is seldom needed is in warm.py.
 *
 * The host's Python objects stay as they were for one request, the reference. A child makes them
 * what its own request is: mostly a few variables.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include <limits.h>
#include <stdio.h>

#include "reference.h"

extern char **environ;

/* What warm.py and this module must agree on. */
#define INTERFACE 1

enum {
    SCRIPTS_MAX = 512,
    SCRIPT_PLACES = 1024,
};

/* ---- what serve is given ---- */

#define GIVEN(X)                                                                             \
    X(find) X(settle) X(prepare) X(code_of) X(execute) X(fail) X(leave) X(unflushed)        \
    X(flush_files) X(names) X(modules) X(system) X(variables) X(own_variables) X(ranges)     \
    X(is_collecting) X(collect) X(count) X(exit_count) X(exit_run) X(thread_count)
#define FIELD(name) PyObject *name;
static struct {
    GIVEN(FIELD)
} given;

/* Names that are looked up in a child: made before, so that only their hash is read. */
#define WORDS(X)                                                                             \
    X(threading) X(_threading_atexits) X(stdin) X(stdout) X(stderr) X(__stdin__)             \
    X(__stdout__) X(__stderr__) X(closed) X(flush) X(code)                                   \
    X(loader) X(runs_cold)
static struct {
    WORDS(FIELD)
} word;

static long cpu_seconds, module_count, descriptor_count;
/* Of containers when a script began. */
static long fresh_count[3];
static bool always_prepares;
static struct {
    unsigned first, last;
} ranges[64];
static size_t range_count;

/* ---- scripts ---- */

/* A script that warm.py keeps, as its file was. */
struct script {
    char *file;
    struct warm_stamp stamp;
    PyObject *script, *code, *loader;
    bool runs_cold;
};

static struct script *scripts[SCRIPT_PLACES];
static size_t script_count;
/* One that is not kept. */
static struct script passing;
/* In a child: its own. */
static const struct script *running;

static struct script **place_of(const char *file) {
    uint32_t hash = 2166136261u;
    for (const char *at = file; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 16777619u;
    size_t place = hash % SCRIPT_PLACES;
    while (scripts[place] != NULL && strcmp(scripts[place]->file, file) != 0)
        place = (place + 1) % SCRIPT_PLACES;
    return &scripts[place];
}

static void forget_scripts(void) {
    for (size_t place = 0; place < SCRIPT_PLACES; place++) {
        if (scripts[place] == NULL)
            continue;
        Py_DECREF(scripts[place]->script);
        Py_DECREF(scripts[place]->code);
        Py_DECREF(scripts[place]->loader);
        free(scripts[place]->file);
        free(scripts[place]);
        scripts[place] = NULL;
    }
    script_count = 0;
}

/* As warm.py has it. */
static int fill_script(struct script *script, PyObject *object) {
    PyObject *code = PyObject_GetAttr(object, word.code);
    PyObject *loader = PyObject_GetAttr(object, word.loader);
    PyObject *cold = PyObject_GetAttr(object, word.runs_cold);
    if (code == NULL || loader == NULL || cold == NULL)
        return -1;
    Py_XDECREF(script->script);
    Py_XDECREF(script->code);
    Py_XDECREF(script->loader);
    Py_INCREF(object);
    script->script = object;
    script->code = code;
    script->loader = loader;
    script->runs_cold = cold != Py_None;
    Py_DECREF(cold);
    return 0;
}

/* The script of a run: asked for in Python when its file is another. NULL with an exception, or
 * with the number of an error. */
static struct script *script_of(struct warm_run *run, int *error) {
    struct warm_stamp stamp;
    *error = warm_look(run->script, &stamp);
    if (*error != 0)
        return NULL;
    struct script **place = place_of(run->script);
    if (*place != NULL && memcmp(&(*place)->stamp, &stamp, sizeof stamp) == 0)
        return *place;
    PyObject *found = PyObject_CallFunction(given.find, "y", run->script);
    if (found == NULL)
        return NULL;
    PyObject *object;
    int is_kept;
    if (!PyArg_ParseTuple(found, "Op", &object, &is_kept))
        return NULL;
    struct script *script = &passing;
    if (is_kept) {
        if (script_count == SCRIPTS_MAX)
            forget_scripts();
        place = place_of(run->script);
        if (*place == NULL) {
            struct script *new = calloc(1, sizeof *new);
            char *file = strdup(run->script);
            if (new == NULL || file == NULL) {
                free(new);
                free(file);
                return (struct script *)PyErr_NoMemory();
            }
            new->file = file;
            *place = new;
            script_count++;
        }
        script = *place;
        /* What was found is no older than this; when it is newer, the next look tells. */
        script->stamp = stamp;
    }
    int filled = fill_script(script, object);
    Py_DECREF(found);
    return filled < 0 ? NULL : script;
}

/* ---- the reference ---- */

/* What the interpreter's objects were last made to be in the host, and for which script. */
static struct warm_reference reference;
static PyObject *reference_script;

static PyObject *list_of(char **strings, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t at = 0; list != NULL && at < count; at++) {
        PyObject *item = PyBytes_FromString(strings[at]);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)at, item) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* settle(script, arguments, variables) of warm.py. */
static int settle(struct script *script, const struct warm_run *run) {
    PyObject *arguments = list_of(run->arguments, run->argument_count);
    PyObject *variables = list_of(run->variables, run->variable_count);
    PyObject *done = NULL;
    if (arguments != NULL && variables != NULL)
        done = PyObject_CallFunctionObjArgs(given.settle, script->script, arguments, variables, NULL);
    Py_XDECREF(arguments);
    Py_XDECREF(variables);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Makes a run the reference, in the host. */
static int adopt(struct script *script, const struct warm_run *run) {
    if (settle(script, run) < 0)
        return -1;
    if (!warm_refer(&reference, run)) {
        PyErr_NoMemory();
        return -1;
    }
    Py_INCREF(script->script);
    Py_XDECREF(reference_script);
    reference_script = script->script;
    return 0;
}

/* In a child: makes os.environ the run's, where that differs from the reference. */
static int change_variables(const struct warm_host *host) {
    const uint16_t *mark = host->marks;
    for (; *mark != UINT16_MAX; mark++) {
        const char *variable = host->run.variables[*mark];
        size_t length = warm_name_bytes(variable);
        PyObject *name = PyBytes_FromStringAndSize(variable, (Py_ssize_t)length);
        PyObject *value = PyBytes_FromString(variable + length + (variable[length] == '='));
        int set = name == NULL || value == NULL ? -1 : PyDict_SetItem(given.variables, name, value);
        Py_XDECREF(name);
        Py_XDECREF(value);
        if (set < 0)
            return -1;
    }
    for (mark++; *mark != UINT16_MAX; mark++) {
        const char *variable = reference.variables[*mark];
        PyObject *name = PyBytes_FromStringAndSize(variable, (Py_ssize_t)warm_name_bytes(variable));
        if (name == NULL || PyDict_DelItem(given.variables, name) < 0)
            return -1;
        Py_DECREF(name);
    }
    return 0;
}

/* The run's variables as C sees them, with those that the interpreter has set by itself. */
static void complete_variables(struct warm_run *run) {
    size_t count = run->variable_count;
    for (size_t at = 0; at < reference.fixed_count; at++) {
        if (!warm_has_name(run->variables, run->variable_count, reference.fixed[at]))
            run->variables[count++] = reference.fixed[at];
    }
    run->variables[count] = NULL;
}

/* ---- the end of a child ---- */

static bool is_true(PyObject *answer) {
    int is = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (is < 0)
        PyErr_Clear();
    return is != 0;
}

static long number_of(PyObject *answer) {
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

/* As the interpreter does when a script has ended, before anything else. What is wrong shows later. */
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
    bool is_good = counts != NULL && PyArg_ParseTuple(counts, "lll", &count[0], &count[1], &count[2]);
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
    if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyUnicode_CheckExact(value) ||
        PyBytes_CheckExact(value) || PyFloat_CheckExact(value))
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
            if (is_second ? PyUnicode_CompareWithASCIIString(name, "__builtins__") == 0 : !is_private)
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
    for (Py_ssize_t at = 0; list != NULL && PyDict_Next(given.modules, &place, NULL, &module); at++) {
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
static void leave(long code) {
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

/* Ends a child with the error that is set. */
static void leave_failed(bool is_ours) {
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

/* ---- a child ---- */

static void end_unstarted(const struct warm_run *run, enum warm_step step, int error) {
    warm_tell_failed(run, step, error);
    _exit(127);
}

static int errno_of_exception(void) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    long number = error == NULL ? EIO : number_of(PyObject_GetAttrString(error, "errno"));
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return number > 0 ? (int)number : EINVAL;
}

/* What does not run here runs as the kernel runs it. */
static void execute(const struct warm_run *run, const struct script *script) {
    PyObject *arguments = list_of(run->arguments, run->argument_count);
    PyObject *variables = list_of(run->variables, run->variable_count);
    if (arguments != NULL && variables != NULL)
        Py_XDECREF(
            PyObject_CallFunctionObjArgs(given.execute, script->script, arguments, variables, NULL));
    end_unstarted(run, EXECUTE, errno_of_exception());
}

/* Becomes the script, and never returns. */
static void run_script(struct warm_host *host, const struct script *script, bool is_known) {
    struct warm_run *run = &host->run;
    running = script;
    int error = warm_become(run, (uint64_t)cpu_seconds);
    if (error != 0)
        end_unstarted(run, DESCRIPTORS, error);
    if (script->runs_cold)
        execute(run, script);
    for (size_t at = 0; at < range_count; at++)
        warm_close(ranges[at].first, ranges[at].last);
    environ = run->variables;
    if (is_known ? change_variables(host) < 0 : settle((struct script *)script, run) < 0)
        leave_failed(false);
    bool has_file = run->flags & WARM_STDIN_IS_FILE;
    if (has_file || always_prepares) {
        PyObject *done = PyObject_CallFunction(given.prepare, "i", (int)has_file);
        if (done == NULL)
            leave_failed(false);
        Py_DECREF(done);
    }
    PyObject *code = script->code;
    if (code == Py_None) {
        code = PyObject_CallFunctionObjArgs(given.code_of, script->script, NULL);
        if (code == NULL)
            leave_failed(true);
    }
    counts_garbage(fresh_count);
    PyObject *done = PyEval_EvalCode(code, given.names, given.names);
    if (done == NULL)
        leave_failed(false);
    Py_DECREF(done);
    flush_first();
    leave(0);
}

/* ---- the host ---- */

/* Looks for the folder and the script. NULL when the run has failed, or with an exception. */
static struct script *find(struct warm_run *run) {
    static char *folder;
    if (folder == NULL || strcmp(folder, run->folder) != 0) {
        if (chdir(run->folder) < 0) {
            warm_fail(run, CHANGE_FOLDER, errno);
            return NULL;
        }
        free(folder);
        folder = strdup(run->folder);
    }
    int error = 0;
    struct script *script = script_of(run, &error);
    if (script == NULL && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OSError))
            return NULL;
        error = errno_of_exception();
    }
    if (script == NULL)
        warm_fail(run, READ_SCRIPT, error);
    return script;
}

/* Forks for the run that has come; -1 with an exception, in the host. */
static int start(struct warm_host *host) {
    struct warm_run *run = &host->run;
    struct script *script = find(run);
    if (script == NULL)
        return PyErr_Occurred() ? -1 : 0;
    bool is_known = script->script == reference_script && warm_is_similar(host, &reference);
    if (is_known)
        reference.strangers = 0;
    else if (!script->runs_cold && (reference_script == NULL || ++reference.strangers > WARM_STRANGERS_MAX)) {
        if (adopt(script, run) < 0)
            return -1;
        is_known = warm_is_similar(host, &reference);
    }
    complete_variables(run);
    if (!warm_make_room(host)) {
        warm_fail(run, FORK, ENOMEM);
        return 0;
    }
    PyOS_BeforeFork();
    pid_t process = fork();
    if (process == 0) {
        PyOS_AfterFork_Child();
        run_script(host, script, is_known);
    }
    int error = errno;
    PyOS_AfterFork_Parent();
    if (process < 0)
        warm_fail(run, FORK, error);
    else
        warm_started(host, process);
    return 0;
}

static int take_ranges(void) {
    range_count = (size_t)PyTuple_Size(given.ranges);
    if (range_count > sizeof ranges / sizeof *ranges) {
        PyErr_SetString(PyExc_ValueError, "modules have left too many files open");
        return -1;
    }
    for (size_t at = 0; at < range_count; at++) {
        long first, end;
        if (!PyArg_ParseTuple(PyTuple_GetItem(given.ranges, (Py_ssize_t)at), "ll", &first, &end))
            return -1;
        ranges[at].first = (unsigned)first;
        ranges[at].last = at + 1 == range_count ? UINT_MAX : (unsigned)end - 1;
    }
    return 0;
}

static int take_own_variables(void) {
    reference.fixed_count = (size_t)PyTuple_Size(given.own_variables);
    reference.fixed = calloc(reference.fixed_count + 1, sizeof *reference.fixed);
    for (size_t at = 0; reference.fixed != NULL && at < reference.fixed_count; at++) {
        const char *text = PyBytes_AsString(PyTuple_GetItem(given.own_variables, (Py_ssize_t)at));
        if (text == NULL)
            return -1;
        reference.fixed[at] = strdup(text);
    }
    return reference.fixed == NULL ? -1 : 0;
}

/* Has the names bound that a child of an interpreter needs and the host does not: to find them takes
 * longer than to fork. */
static void bind_names(void) {
    Py_tss_t *key = PyThread_tss_alloc();
    if (key != NULL && PyThread_tss_create(key) == 0)
        PyThread_tss_delete(key);
    PyThread_tss_free(key);
}

/* serve(given, cpu seconds, modules, descriptors, whether each child is prepared, what it is):
 * the loop. Returns never, but for an error in the host. */
static PyObject *serve(PyObject *module, PyObject *words) {
    (void)module;
    PyObject *things;
    const char *what;
    int prepares;
    if (!PyArg_ParseTuple(words, "O!lllps", &PyDict_Type, &things, &cpu_seconds, &module_count,
                          &descriptor_count, &prepares, &what))
        return NULL;
    always_prepares = prepares;
#define TAKE(name)                                                                               if ((given.name = PyDict_GetItemString(things, #name)) == NULL)                                  return PyErr_Format(PyExc_KeyError, "serve is not given %s", #name);                     Py_INCREF(given.name);
    GIVEN(TAKE)
#define MAKE(name)                                                                               if ((word.name = PyUnicode_InternFromString(#name)) == NULL ||                                   PyObject_Hash(word.name) == -1)                                                              return NULL;
    WORDS(MAKE)
    bind_names();
    if (take_ranges() < 0 || take_own_variables() < 0)
        return NULL;
    struct warm_host *host = warm_begin(3, 0);
    if (host == NULL)
        return PyErr_SetFromErrno(PyExc_OSError);
    host->spare_pointers = reference.fixed_count;
    char packet[WARM_HEAD_BYTES + 128];
    warm_head(packet, WARM_READY, 0, 0, 0);
    int length = snprintf(packet + WARM_HEAD_BYTES, 128, "%s", what);
    warm_tell(3, packet, WARM_HEAD_BYTES + (size_t)(length > 127 ? 127 : length));
    for (;;) {
        switch (warm_wait(host)) {
        case WARM_HAS_RUN:
            if (start(host) < 0)
                return NULL;
            break;
        case WARM_INTERRUPTED:
            if (PyErr_CheckSignals() < 0)
                return NULL;
            break;
        case WARM_OVER:
            _exit(0);
        case WARM_NO_MEMORY:
            return PyErr_NoMemory();
        default:
            return PyErr_Format(PyExc_ValueError, "the server makes no sense to this host");
        }
    }
}

static PyMethodDef module_methods[] = {
    {"serve", serve, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int fill_module(PyObject *module) {
    return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

/* In two phases: the module does not enter itself where scripts would find it. */
static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill_module},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_warm",
    .m_doc = "The loop of a warm host.",
    .m_size = 0,
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__warm(void) {
    return PyModuleDef_Init(&module_definition);
}
