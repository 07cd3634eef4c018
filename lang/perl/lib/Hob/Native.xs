/* Hob::Native: requests through libhob, which reaches shared memory.
 *
 * The library is opened when it is needed, not linked: the module loads where there is none. A
 * request is a scalar that holds a pointer to `request` below; the text of variables and answers
 * is copied between Perl's strings and the library's, never kept.
 */
#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"
#include <dlfcn.h>
#include "hob.h"

/* What Native.pm expects of this module; it has the same number. */
#define INTERFACE 2

/* The calls of libhob that are used here. */
#define CALLS(X) \
    X(hob_connect) X(hob_accept_within) X(hob_concurrency) X(hob_carrier) X(hob_is_draining) \
    X(hob_set_lifetime) X(hob_indexed) X(hob_next_variable) X(hob_content_length) X(hob_read) \
    X(hob_head) X(hob_trailer) X(hob_interim) X(hob_tunnel) X(hob_write) X(hob_flush) \
    X(hob_finish) X(hob_fail) X(hob_is_cancelled) X(hob_log) X(hob_trace) X(hob_set_timeout) \
    X(hob_callout) X(hob_explain)
#define POINTER(name) __typeof__(name) *name;
static struct { CALLS(POINTER) } lib;
static hob *server;

/* So long may a signal wait while there is no request: Perl's handlers run between two calls. */
#define ACCEPT_MS 5000
#define READ_BYTES 65536

typedef struct {
    hob_request *handle; /* NULL once it is over */
    int is_begun;
    int is_cancelled;
} request;

#define REQUEST(sv) (INT2PTR(request *, SvIV(SvRV(sv))))

/* Codes that end the process or the call. */
static int checked(pTHX_ request *self, int code) {
    if (code == HOB_CANCELLED && self) self->is_cancelled = 1;
    if (code == HOB_GONE || code == HOB_BROKEN) my_exit(code == HOB_GONE ? 0 : 1);
    if (code < 0 && code != HOB_CANCELLED && code != HOB_FORKED)
        croak("libhob: %s\n", lib.hob_explain(code));
    return code;
}

static int finish(pTHX_ request *self) {
    hob_request *handle = self->handle;
    if (!handle) return 0;
    self->handle = NULL;
    return checked(aTHX_ self, lib.hob_finish(handle)) >= 0;
}

/* Has a body: its length is known and not 0, or not known. */
static int has_body(request *self) { return lib.hob_content_length(self->handle) != 0; }

/* Sets one value in a hash with magic, if it is another. */
static void set_one(pTHX_ HV *hash, const char *name, STRLEN name_bytes, const char *value,
                    STRLEN value_bytes) {
    SV **place = hv_fetch(hash, name, (I32)name_bytes, 1);
    if (!place) return;
    if (SvPOK(*place) && SvCUR(*place) == value_bytes && memEQ(SvPVX(*place), value, value_bytes))
        return;
    sv_setpvn_mg(*place, value, value_bytes);
}

static SV *callout(pTHX_ request *self, const char *text) {
    char into[4096];
    size_t length = 0;
    int code = lib.hob_callout(self->handle, text, into, sizeof into, &length);
    if (code < 0 && code != HOB_REFUSED) checked(aTHX_ self, code);
    if (length >= sizeof into) length = sizeof into - 1;
    return newSVpvf("%s %.*s", code == HOB_REFUSED ? "400" : "200", (int)length, into);
}

MODULE = Hob::Native  PACKAGE = Hob::Native
PROTOTYPES: DISABLE

int
interface()
  CODE:
    RETVAL = INTERFACE;
  OUTPUT: RETVAL

 # Opens the library; why it cannot be, if so.
SV *
open_library(const char *path)
  CODE:
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *missing = NULL;
    RETVAL = &PL_sv_undef;
    if (!library) RETVAL = newSVpv(dlerror(), 0);
    else {
#define FIND(name) if (!(lib.name = dlsym(library, #name))) missing = #name;
        CALLS(FIND)
        if (missing) RETVAL = newSVpvf("%s has no %s", path, missing);
    }
  OUTPUT: RETVAL

 # Connects; the carrier.
SV *
connect_server()
  CODE:
    checked(aTHX_ NULL, lib.hob_connect(&server));
    RETVAL = newSVpv(lib.hob_carrier(server), 0);
  OUTPUT: RETVAL

int
concurrency(...)
  CODE:
    RETVAL = lib.hob_concurrency(server);
  OUTPUT: RETVAL

int
is_draining(...)
  CODE:
    RETVAL = lib.hob_is_draining(server);
  OUTPUT: RETVAL

void
set_lifetime(long seconds)
  CODE:
    checked(aTHX_ NULL, lib.hob_set_lifetime(server, seconds));

SV *
next(...)
  CODE:
    hob_request *handle = NULL;
    int code;
    while ((code = lib.hob_accept_within(server, &handle, ACCEPT_MS)) == HOB_AGAIN)
        PERL_ASYNC_CHECK();
    if (code == HOB_NO_MORE || code == HOB_GONE || code == HOB_FORKED) XSRETURN_UNDEF;
    checked(aTHX_ NULL, code);
    {
        request *new;
        Newxz(new, 1, request);
        new->handle = handle;
        RETVAL = sv_setref_pv(newSV(0), "Hob::Native::Request", new);
    }
  OUTPUT: RETVAL

MODULE = Hob::Native  PACKAGE = Hob::Native::Request

void
DESTROY(SV *self)
  CODE:
    request *it = REQUEST(self);
    if (it->handle) lib.hob_fail(it->handle, "the program forgot the request");
    Safefree(it);

 # Puts the variables into a hash.
void
fill(SV *self, SV *into)
  CODE:
    request *it = REQUEST(self);
    HV *hash = (HV *)SvRV(into);
    size_t cursor = 0;
    const char *name, *value;
    while (it->handle && lib.hob_next_variable(it->handle, &cursor, &name, &value) == 1)
        (void)hv_store(hash, name, (I32)strlen(name), newSVpv(value, 0), 0);

 # Sets variables in a hash with magic, as %ENV is, and those of an array of names and values: only
 # what differs. How many there are.
int
set(SV *self, SV *into, SV *more)
  CODE:
    request *it = REQUEST(self);
    HV *hash = (HV *)SvRV(into);
    AV *array = (AV *)SvRV(more);
    size_t cursor = 0;
    const char *name, *value;
    SSize_t at;
    RETVAL = 0;
    while (it->handle && lib.hob_next_variable(it->handle, &cursor, &name, &value) == 1) {
        set_one(aTHX_ hash, name, strlen(name), value, strlen(value));
        RETVAL++;
    }
    for (at = 0; at < av_len(array); at += 2) {
        STRLEN name_bytes, value_bytes;
        name = SvPV(*av_fetch(array, at, 0), name_bytes);
        value = SvPV(*av_fetch(array, at + 1, 0), value_bytes);
        set_one(aTHX_ hash, name, name_bytes, value, value_bytes);
        RETVAL++;
    }
  OUTPUT: RETVAL

SV *
indexed(SV *self, int place)
  CODE:
    request *it = REQUEST(self);
    size_t length = 0;
    const char *value = it->handle ? lib.hob_indexed(it->handle, place, &length) : NULL;
    RETVAL = value ? newSVpvn(value, length) : newSVpvn("", 0);
  OUTPUT: RETVAL

SV *
content_length(SV *self)
  CODE:
    int64_t length = lib.hob_content_length(REQUEST(self)->handle);
    RETVAL = length < 0 ? &PL_sv_undef : newSViv(length);
  OUTPUT: RETVAL

int
has_body(SV *self)
  CODE:
    RETVAL = has_body(REQUEST(self));
  OUTPUT: RETVAL

int
is_over(SV *self)
  CODE:
    RETVAL = REQUEST(self)->handle == NULL;
  OUTPUT: RETVAL

int
is_begun(SV *self)
  CODE:
    RETVAL = REQUEST(self)->is_begun;
  OUTPUT: RETVAL

int
is_canceled(SV *self)
  CODE:
    request *it = REQUEST(self);
    RETVAL = it->is_cancelled || (it->handle && lib.hob_is_cancelled(it->handle) == 1);
  OUTPUT: RETVAL

SV *
read_body(SV *self, ...)
  CODE:
    request *it = REQUEST(self);
    IV size = items > 1 && SvOK(ST(1)) ? SvIV(ST(1)) : READ_BYTES;
    int64_t got = 0;
    if (size > READ_BYTES) size = READ_BYTES;
    RETVAL = newSV(size > 0 ? size : 1);
    SvPOK_only(RETVAL);
    if (it->handle && size > 0) {
        got = lib.hob_read(it->handle, SvPVX(RETVAL), size);
        if (got < 0) {
            checked(aTHX_ it, (int)got);
            got = 0;
        }
    }
    SvCUR_set(RETVAL, got);
    *SvEND(RETVAL) = '\0';
  OUTPUT: RETVAL

void
answer(SV *self, int status, SV *fields, SV *body)
  CODE:
    request *it = REQUEST(self);
    if (it->handle) {
        STRLEN field_bytes, body_bytes;
        const char *lines = SvPVbyte(fields, field_bytes);
        const char *bytes = SvPVbyte(body, body_bytes);
        checked(aTHX_ it, lib.hob_head(it->handle, status, lines, field_bytes));
        it->is_begun = 1;
        if (body_bytes) checked(aTHX_ it, lib.hob_write(it->handle, bytes, body_bytes));
        finish(aTHX_ it);
    }

void
begin(SV *self, int status, SV *fields, ...)
  CODE:
    request *it = REQUEST(self);
    if (it->handle && !it->is_begun) {
        STRLEN bytes;
        const char *lines = SvPVbyte(fields, bytes);
        it->is_begun = 1;
        if (items > 3 && SvTRUE(ST(3)))
            checked(aTHX_ it, lib.hob_tunnel(it->handle, status, lines, bytes));
        else {
            checked(aTHX_ it, lib.hob_head(it->handle, status, lines, bytes));
            checked(aTHX_ it, lib.hob_flush(it->handle));
        }
    }

int
write(SV *self, SV *data, ...)
  CODE:
    request *it = REQUEST(self);
    RETVAL = 0;
    if (it->handle) {
        STRLEN bytes;
        const char *from = SvPVbyte(data, bytes);
        int code = bytes ? checked(aTHX_ it, lib.hob_write(it->handle, from, bytes)) : HOB_OK;
        if (items > 2 && SvTRUE(ST(2))) finish(aTHX_ it);
        else if (bytes && code >= 0) code = checked(aTHX_ it, lib.hob_flush(it->handle));
        RETVAL = code >= 0 && !it->is_cancelled;
    }
  OUTPUT: RETVAL

int
finish(SV *self, ...)
  CODE:
    request *it = REQUEST(self);
    if (it->handle && items > 1 && SvOK(ST(1))) {
        STRLEN length;
        char *line = savesvpv(ST(1)), *next, *colon;
        char *whole = line;
        SvPVbyte(ST(1), length);
        SAVEFREEPV(whole);
        for (; line && *line; line = next) {
            next = strchr(line, '\n');
            if (next) *next++ = '\0';
            colon = strchr(line, ':');
            if (!colon) continue;
            *colon++ = '\0';
            while (*colon == ' ') colon++;
            checked(aTHX_ it, lib.hob_trailer(it->handle, line, colon));
        }
    }
    RETVAL = finish(aTHX_ it);
  OUTPUT: RETVAL

void
fail(SV *self, SV *reason)
  CODE:
    request *it = REQUEST(self);
    if (it->handle) {
        hob_request *handle = it->handle;
        it->handle = NULL;
        checked(aTHX_ it, lib.hob_fail(handle, SvPVutf8_nolen(reason)));
    }

void
info(SV *self, int status, SV *fields)
  CODE:
    request *it = REQUEST(self);
    if (it->handle && !it->is_begun) {
        STRLEN bytes;
        const char *lines = SvPVbyte(fields, bytes);
        checked(aTHX_ it, lib.hob_interim(it->handle, status, lines, bytes));
    }

void
log(SV *self, const char *level, const char *text)
  CODE:
    request *it = REQUEST(self);
    if (it->handle) checked(aTHX_ it, lib.hob_log(it->handle, level, text));

void
trace(SV *self, const char *text)
  CODE:
    request *it = REQUEST(self);
    if (it->handle) checked(aTHX_ it, lib.hob_trace(it->handle, text));

void
timeout(SV *self, long seconds)
  CODE:
    request *it = REQUEST(self);
    if (it->handle) checked(aTHX_ it, lib.hob_set_timeout(it->handle, seconds));

SV *
callout(SV *self, const char *text)
  CODE:
    request *it = REQUEST(self);
    RETVAL = it->handle ? callout(aTHX_ it, text) : newSVpvs("400 the request is over");
  OUTPUT: RETVAL
