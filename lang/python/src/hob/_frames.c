/* The native part of WebSocket frames: the usual frame, a whole message in itself. */
#include "_native.h"

static const size_t HEAD_BYTES_MIN = 6; /* two bytes and the mask */

/* Bytes of the head up to the mask, and of the payload; 0 when it is no usual frame, or not there. */
static size_t usual_head(const unsigned char *bytes, size_t size, bool *is_text, size_t *payload_bytes) {
    if (size < HEAD_BYTES_MIN || (bytes[0] != 0x81 && bytes[0] != 0x82) || bytes[1] < 0x80)
        return 0;
    *is_text = bytes[0] == 0x81;
    *payload_bytes = bytes[1] & 127;
    if (*payload_bytes < 126)
        return 2;
    size_t wide = *payload_bytes == 126 ? 2 : 8, length = 0;
    if (size < HEAD_BYTES_MIN + wide)
        return 0;
    for (size_t at = 2; at < 2 + wide; at++)
        length = length << 8 | bytes[at];
    *payload_bytes = length;
    return length < (wide == 2 ? 126 : 65536) ? 0 : 2 + wide;
}

/* Takes the mask off: eight bytes at a time, which compilers make more of. */
static void unmask(unsigned char *to, const unsigned char *from, size_t size, const unsigned char *mask) {
    uint64_t wide, pattern;
    memcpy(&pattern, mask, 4);
    memcpy((char *)&pattern + 4, mask, 4);
    size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        memcpy(&wide, from + at, 8);
        wide ^= pattern;
        memcpy(to + at, &wide, 8);
    }
    for (; at < size; at++)
        to[at] = from[at] ^ mask[at & 3];
}

static PyObject *taken(const unsigned char *payload, size_t size, const unsigned char *mask, bool is_text) {
    unsigned char near[1024], *room = size <= sizeof near ? near : PyMem_Malloc(size);
    if (room == NULL)
        return PyErr_NoMemory();
    unmask(room, payload, size, mask);
    PyObject *made = is_text ? PyUnicode_DecodeUTF8((char *)room, (Py_ssize_t)size, "strict")
                             : PyBytes_FromStringAndSize((char *)room, (Py_ssize_t)size);
    if (room != near)
        PyMem_Free(room);
    return made;
}

/* unframe(rest, bytes_max): a message that is one frame and all there, str or bytes, which is taken
 * off `rest`, a bytearray. None for everything else, faults too: frames.py sees to that. */
PyObject *module_unframe(PyObject *unused, PyObject *words) {
    (void)unused;
    PyObject *rest;
    Py_ssize_t bytes_max;
    if (!PyArg_ParseTuple(words, "O!n", &PyByteArray_Type, &rest, &bytes_max))
        return NULL;
    const unsigned char *bytes = (unsigned char *)PyByteArray_AsString(rest);
    size_t size = (size_t)PyByteArray_Size(rest), payload_bytes = 0;
    bool is_text = false;
    size_t at = usual_head(bytes, size, &is_text, &payload_bytes);
    if (at == 0 || payload_bytes > (size_t)bytes_max || size - at - 4 < payload_bytes)
        return none();
    PyObject *made = taken(bytes + at + 4, payload_bytes, bytes + at, is_text);
    if (made == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
            return NULL;
        PyErr_Clear();
        return none();
    }
    size_t end = at + 4 + payload_bytes;
    memmove(PyByteArray_AsString(rest), bytes + end, size - end);
    if (PyByteArray_Resize(rest, (Py_ssize_t)(size - end)) == 0)
        return made;
    Py_DECREF(made);
    return NULL;
}
