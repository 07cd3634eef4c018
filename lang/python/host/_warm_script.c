/* Scripts as warm.py has them, kept by the stamps of their files: to look for one in Python would
 * write to memory that the last child shares.
 */
#include "_warm.h"

enum { SCRIPTS_MAX = 512, SCRIPT_PLACES = 1024 };

static struct script *scripts[SCRIPT_PLACES];
static size_t script_count;
/* One that is not kept. */
static struct script passing;

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

struct script *script_of(struct warm_run *run, int *error) {
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
