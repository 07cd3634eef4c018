/* The loop of a warm host of Python, and what a child runs of ours: in C, because an interpreter
 * that runs a line of Python writes to the pages of all that the line names, which are copied then,
 * in the host after each fork and in each child. What is seldom needed is in warm.py.
 *
 * The host's Python objects stay as they were for one request, the reference. A child makes them
 * what its own request is: mostly a few variables.
 */
#include "_warm.h"

extern char **environ;

/* What warm.py and this module must agree on. */
#define INTERFACE 1

struct given given;
struct word word;
long module_count, descriptor_count;

static uint64_t cpu_seconds;
static bool always_prepares;
/* Descriptors that are the host's. */
static struct {
    unsigned first, last;
} ranges[64];
static size_t range_count;

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
        done =
            PyObject_CallFunctionObjArgs(given.settle, script->script, arguments, variables, NULL);
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
        Py_XDECREF(PyObject_CallFunctionObjArgs(given.execute, script->script, arguments, variables,
                                                NULL));
    end_unstarted(run, EXECUTE, errno_of_exception());
}

/* Becomes the script, and never returns. */
static void run_script(struct warm_host *host, const struct script *script, bool is_known) {
    struct warm_run *run = &host->run;
    int error = warm_become(run, cpu_seconds);
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
    note_begin(script);
    PyObject *done = PyEval_EvalCode(code, given.names, given.names);
    if (done == NULL)
        leave_failed(false);
    Py_DECREF(done);
    leave_run();
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
    else if (!script->runs_cold &&
             (reference_script == NULL || ++reference.strangers > WARM_STRANGERS_MAX)) {
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

/* Has the names bound that a child of an interpreter needs and the host does not: to find them
 * takes longer than to fork. */
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
    unsigned long long seconds;
    int prepares;
    if (!PyArg_ParseTuple(words, "O!Kllps", &PyDict_Type, &things, &seconds, &module_count,
                          &descriptor_count, &prepares, &what))
        return NULL;
    always_prepares = prepares;
    cpu_seconds = seconds;
#define TAKE(name) \
    if ((given.name = PyDict_GetItemString(things, #name)) == NULL) \
        return PyErr_Format(PyExc_KeyError, "serve is not given %s", #name); \
    Py_INCREF(given.name);
    GIVEN(TAKE)
#define MAKE(name) \
    if ((word.name = PyUnicode_InternFromString(#name)) == NULL || PyObject_Hash(word.name) == -1) \
        return NULL;
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
    PyModuleDef_HEAD_INIT, .m_name = "_warm",           .m_doc = "The loop of a warm host.",
    .m_size = 0,           .m_methods = module_methods, .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__warm(void) {
    return PyModuleDef_Init(&module_definition);
}
