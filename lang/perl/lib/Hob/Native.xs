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
#include "perliol.h"
#include <dlfcn.h>
#include "hob.h"

/* What Native.pm expects of this module; it has the same number. */
#define INTERFACE 5

/* The calls of libhob that are used here. */
#define CALLS(X) \
    X(hob_connect) X(hob_accept_within) X(hob_concurrency) X(hob_carrier) X(hob_is_draining) \
    X(hob_set_lifetime) X(hob_indexed) X(hob_variables) X(hob_content_length) X(hob_read) \
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

/* ---- a body as a handle: it is read as it comes ---- */

typedef struct {
    PerlIOBuf buffer;
    SV *request;
} body_layer;

static IV fill_from_body(pTHX_ PerlIO *file) {
    body_layer *self = PerlIOSelf(file, body_layer);
    PerlIOBuf *buffer = &self->buffer;
    request *it = INT2PTR(request *, SvIV(self->request));
    int64_t got = 0;
    if (!buffer->buf) PerlIO_get_base(file);
    buffer->ptr = buffer->end = buffer->buf;
    if (it->handle) got = lib.hob_read(it->handle, buffer->buf, buffer->bufsiz);
    if (got < 0) checked(aTHX_ it, (int)got);
    if (got <= 0) {
        PerlIOBase(file)->flags |= got < 0 ? PERLIO_F_ERROR : PERLIO_F_EOF;
        return -1;
    }
    buffer->end += got;
    PerlIOBase(file)->flags |= PERLIO_F_RDBUF;
    return 0;
}

static IV popped_from_body(pTHX_ PerlIO *file) {
    SvREFCNT_dec(PerlIOSelf(file, body_layer)->request);
    return PerlIOBuf_popped(aTHX_ file);
}

/* What was read is gone. */
static IV seek_in_body(pTHX_ PerlIO *file, Off_t offset, int whence) {
    errno = ESPIPE;
    return -1;
}

static IV body_number(pTHX_ PerlIO *file) { return -1; }

static IV nothing_to_flush(pTHX_ PerlIO *file) { return 0; }

static PerlIO_funcs body_functions = {
    sizeof(PerlIO_funcs), "hob_body", sizeof(body_layer), PERLIO_K_BUFFERED | PERLIO_K_RAW,
    PerlIOBuf_pushed, popped_from_body, NULL, PerlIOBase_binmode, NULL, body_number, NULL,
    PerlIOBuf_read, PerlIOBuf_unread, NULL, seek_in_body, NULL, PerlIOBase_close, nothing_to_flush,
    fill_from_body, PerlIOBase_eof, PerlIOBase_error, PerlIOBase_clearerr, PerlIOBase_setlinebuf,
    PerlIOBuf_get_base, PerlIOBuf_bufsiz, PerlIOBuf_get_ptr, PerlIOBuf_get_cnt, PerlIOBuf_set_ptrcnt,
};

/* A handle that nobody knows by name. */
static SV *handle_on_body(pTHX_ SV *request) {
    PerlIO *file = PerlIO_push(aTHX_ PerlIO_allocate(aTHX), &body_functions, "r", NULL);
    GV *glob = newGVgen("Hob::PSGI");
    SV *handle = newRV_inc((SV *)glob);
    body_layer *self = PerlIOSelf(file, body_layer);
    self->request = SvREFCNT_inc(request);
    self->buffer.bufsiz = READ_BYTES;
    IoIFP(GvIOn(glob)) = file;
    IoTYPE(GvIOp(glob)) = IoTYPE_RDONLY;
    (void)hv_delete(GvSTASH(glob), GvNAME(glob), GvNAMELEN(glob), G_DISCARD);
    return sv_bless(handle, gv_stashpvs("IO::File", GV_ADD));
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

/* Names and values that follow each other, a NUL behind each. */
typedef struct {
    const char *at, *stop, *name, *value;
    STRLEN name_bytes, value_bytes;
} variables;

static variables variables_of(request *self) {
    variables all = {0};
    size_t length = 0;
    if (self->handle) all.at = lib.hob_variables(self->handle, &length);
    all.stop = all.at + length;
    return all;
}

static int next_variable(variables *all) {
    if (all->at >= all->stop) return 0;
    all->name = all->at;
    all->name_bytes = strlen(all->name);
    all->value = all->name + all->name_bytes + 1;
    all->value_bytes = strlen(all->value);
    all->at = all->value + all->value_bytes + 1;
    return 1;
}

/* The environment of the last request, of which those that follow are copies in which only what
 * differs is set. */
static struct {
    HV *base, *env;
    char *kept;
    STRLEN length;
} last;

static void store(pTHX_ HV *hash, const variables *one) {
    (void)hv_store(hash, one->name, (I32)one->name_bytes, newSVpvn(one->value, one->value_bytes), 0);
}

/* Sets what differs; false when the names are others. */
static int set_changed(pTHX_ variables all) {
    variables kept = {0};
    kept.at = last.kept;
    kept.stop = last.kept + last.length;
    while (next_variable(&all)) {
        if (!next_variable(&kept) || all.name_bytes != kept.name_bytes
            || memNE(all.name, kept.name, all.name_bytes))
            return 0;
        if (all.value_bytes != kept.value_bytes || memNE(all.value, kept.value, all.value_bytes))
            store(aTHX_ last.env, &all);
    }
    return kept.at == kept.stop;
}

/* The variables in a copy of a hash. */
static HV *env_on(pTHX_ request *self, HV *base) {
    variables all = variables_of(self);
    STRLEN length = all.stop - all.at;
    int is_known = last.base == base && last.env;
    if (!is_known || length != last.length || memNE(all.at, last.kept, length)) {
        if (!is_known || !set_changed(aTHX_ all)) {
            variables rest = all;
            if (last.base != base) {
                SvREFCNT_dec((SV *)last.base);
                last.base = (HV *)SvREFCNT_inc((SV *)base);
            }
            SvREFCNT_dec((SV *)last.env);
            last.env = newHVhv(base);
            while (next_variable(&rest)) store(aTHX_ last.env, &rest);
        }
        Renew(last.kept, length + 1, char);
        Copy(all.at, last.kept, length, char);
        last.length = length;
    }
    return newHVhv(last.env);
}

/* ---- a whole answer ---- */

#define LINES_BYTES_MAX 4096

/* Appends bytes to lines; false when they are too many, no bytes, or could forge a line. */
static int append(pTHX_ char *lines, STRLEN *length, SV *text, char after) {
    STRLEN bytes;
    const char *from;
    if (SvROK(text)) return 0; /* what it says is for Perl to find out */
    from = SvOK(text) ? SvPV(text, bytes) : (bytes = 0, "");
    if (SvUTF8(text) || *length + bytes + 2 > LINES_BYTES_MAX || memchr(from, '\n', bytes)
        || memchr(from, '\r', bytes) || memchr(from, '\0', bytes))
        return 0;
    Copy(from, lines + *length, bytes, char);
    *length += bytes;
    lines[(*length)++] = after;
    if (after == ':') lines[(*length)++] = ' ';
    return 1;
}

static AV *array_of(pTHX_ AV *response, SSize_t at) {
    SV **place = av_fetch(response, at, 0);
    if (!place || !SvROK(*place) || SvOBJECT(SvRV(*place)) || SvTYPE(SvRV(*place)) != SVt_PVAV) return NULL;
    return SvRMAGICAL(SvRV(*place)) ? NULL : (AV *)SvRV(*place);
}

/* Sends [status, fields, [bytes ...]]; false when it is not that simple. */
static int send_array(pTHX_ request *self, SV *given) {
    AV *response, *fields, *body;
    SV **place;
    SSize_t at;
    IV status;
    char lines[LINES_BYTES_MAX];
    STRLEN length = 0;
    if (!self->handle || self->is_begun || !SvROK(given) || SvTYPE(SvRV(given)) != SVt_PVAV) return 0;
    response = (AV *)SvRV(given);
    if (SvRMAGICAL(response) || av_len(response) != 2 || !(place = av_fetch(response, 0, 0))
        || SvROK(*place) || !looks_like_number(*place))
        return 0;
    status = SvIV(*place);
    fields = array_of(aTHX_ response, 1);
    body = array_of(aTHX_ response, 2);
    if (!fields || !body || status < 200 || status > 599 || !(av_len(fields) & 1)) return 0;
    for (at = 0; at <= av_len(fields); at++) {
        place = av_fetch(fields, at, 0);
        if (!place || !append(aTHX_ lines, &length, *place, at & 1 ? '\n' : ':')) return 0;
    }
    for (at = 0; at <= av_len(body); at++) {
        place = av_fetch(body, at, 0);
        if (!place || SvROK(*place) || SvGMAGICAL(*place) || (SvOK(*place) && SvUTF8(*place))) return 0;
    }
    if (checked(aTHX_ self, lib.hob_head(self->handle, (int)status, lines, length)) < 0) return 0;
    self->is_begun = 1;
    for (at = 0; at <= av_len(body); at++) {
        STRLEN bytes;
        const char *from;
        place = av_fetch(body, at, 0);
        if (!SvOK(*place)) continue;
        from = SvPV(*place, bytes);
        if (bytes) checked(aTHX_ self, lib.hob_write(self->handle, from, bytes));
    }
    finish(aTHX_ self);
    return 1;
}

/* ---- CGI scripts ---- */

#include "environment.h"
#include "traces.h"

/* The end of the head in what a script has printed, and in `*fields` how long its lines are; 0 when it
 * has no end yet. */
static STRLEN head_end(const char *text, STRLEN bytes, STRLEN *fields) {
    const char *line = text, *stop = text + bytes, *end;
    for (; line < stop; line = end + 1) {
        const char *at = line + (line + 1 < stop && *line == '\r');
        if (*at == '\n') {
            *fields = line - text;
            return at + 1 - text;
        }
        end = memchr(line, '\n', stop - line);
        if (!end) return 0;
    }
    return 0;
}

/* What is kept of a script for usual requests, in an array. */
enum { CODE, PATH, STAMP, INC_COUNT, INSTEAD };

static SV *kept_at(pTHX_ SV *usual, int place) {
    SV **found = av_fetch((AV *)SvRV(usual), place, 0);
    return found ? *found : &PL_sv_undef;
}

/* What tells a file from the one that was there before it; false when there is none. */
#define STAMP_WORDS 7
static int stamp_of(const char *path, U64 *words) {
    struct stat found;
    if (stat(path, &found)) return 0;
    words[0] = found.st_dev, words[1] = found.st_ino, words[2] = found.st_size;
    words[3] = found.st_mtim.tv_sec, words[4] = found.st_mtim.tv_nsec;
    words[5] = found.st_ctim.tv_sec, words[6] = found.st_ctim.tv_nsec;
    return 1;
}

/* The script of a usual request, with its environment made; NULL when it is not one. */
static SV *usual(pTHX_ request *self, HV *env, SV *current, HV *kept) {
    variables all = variables_of(self);
    size_t path_bytes = 0, name_bytes = 0, file_bytes = 0, query_bytes = 0;
    const char *file = lib.hob_indexed(self->handle, HOB_SCRIPT_FILENAME, &file_bytes);
    const char *name = lib.hob_indexed(self->handle, HOB_SCRIPT_NAME, &name_bytes);
    const char *path = lib.hob_indexed(self->handle, HOB_PATH_INFO, &path_bytes);
    const char *query = lib.hob_indexed(self->handle, HOB_QUERY_STRING, &query_bytes);
    U64 stamp[STAMP_WORDS];
    char key[1024];
    SV **found, *script;
    /* Words of a query that is no form are arguments: here one, as it is. */
    int is_word = query_bytes && !memchr(query, '=', query_bytes);
    if (has_body(self) || !file || (is_word && strcspn(query, "+%-") < query_bytes)) return NULL;
    found = hv_fetch(kept, file, (I32)file_bytes, 0);
    if (!found && name && path && name_bytes + path_bytes < sizeof key) {
        Copy(name, key, name_bytes + 1, char);
        Copy(path, key + name_bytes + 1, path_bytes, char);
        found = hv_fetch(kept, key, (I32)(name_bytes + 1 + path_bytes), 0);
    }
    if (!found) return NULL;
    script = *found;
    if (!sv_eq(kept_at(aTHX_ script, PATH), current) || !stamp_of(SvPV_nolen(current), stamp)
        || SvCUR(kept_at(aTHX_ script, STAMP)) != sizeof stamp
        || memNE(SvPVX(kept_at(aTHX_ script, STAMP)), (const char *)stamp, sizeof stamp)
        || !set_if_as_left(aTHX_ env, &all, (AV *)SvRV(kept_at(aTHX_ script, INSTEAD))))
        return NULL;
    has_taken = 0;
    av_clear(GvAVn(PL_argvgv));
    if (is_word) av_push(GvAVn(PL_argvgv), newSVpvn(query, query_bytes));
    STATUS_UNIX_SET(-1);
    errno = 0;
    return script;
}

/* Sends what a script has printed as a whole answer; false when it is not that simple. */
static int send_printed(pTHX_ request *self, SV *printed) {
    STRLEN bytes, fields = 0;
    const char *text = SvPVbyte(printed, bytes);
    STRLEN end = head_end(text, bytes, &fields);
    if (!self->handle || self->is_begun || !end || (fields >= 5 && memEQ(text, "HTTP/", 5))) return 0;
    if (lib.hob_head(self->handle, 0, text, fields) < 0) return 0; /* Perl says what it is */
    self->is_begun = 1;
    if (end < bytes) checked(aTHX_ self, lib.hob_write(self->handle, text + end, bytes - end));
    finish(aTHX_ self);
    return 1;
}

static SV *callout(pTHX_ request *self, const char *text) {
    char into[4096];
    size_t length = 0;
    int code = lib.hob_callout(self->handle, text, into, sizeof into, &length);
    if (code < 0 && code != HOB_REFUSED) checked(aTHX_ self, code);
    if (length >= sizeof into) length = sizeof into - 1;
    return newSVpvf("%s %.*s", code == HOB_REFUSED ? "400" : "200", (int)length, into);
}

/* The end of a usual request: true when it has been sent and the script has left nothing behind, else
 * what it has left. */
static int finish_usual(pTHX_ request *self, SV *script, int *found) {
    HV *loaded = GvHVn(PL_incgv);
    *found = traces(aTHX);
    if (*found || STATUS_UNIX != -1 || self->is_begun || hv_exists(loaded, "CGI.pm", 6)
        || hv_exists(loaded, "Time/HiRes.pm", 13)
        || av_len(GvAVn(PL_incgv)) + 1 != SvIV(kept_at(aTHX_ script, INC_COUNT)))
        return 0;
    sv_setiv(progress, 1);
    end_output(aTHX);
    if (has_taken || (SvIV(progress) == 1 && has_file())) return 0; /* Perl makes new files */
    return send_printed(aTHX_ self, output);
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
        static HV *class;
        request *new;
        Newxz(new, 1, request);
        new->handle = handle;
        if (!class) class = gv_stashpvs("Hob::Native::Request", GV_ADD);
        RETVAL = sv_bless(newRV_noinc(newSViv(PTR2IV(new))), class);
    }
  OUTPUT: RETVAL

 # The hash that environments are copies of has changed.
void
forget()
  CODE:
    SvREFCNT_dec((SV *)last.env);
    last.env = NULL;

 # Begins to watch what scripts do; where their output is collected, and how far they are.
void
watch(SV *collected, SV *how_far)
  CODE:
    watch(aTHX_ SvRV(collected), SvRV(how_far));

 # The file that is descriptor 1.
void
set_output_file(int fd)
  CODE:
    output_file = fd;

 # Remembers how the standard handles are made.
void
remember_handles()
  CODE:
    remember_handles(aTHX);

 # Remembers what handles SIGTERM, which scripts are not to change.
void
remember_handlers()
  CODE:
    term_handler = PL_psig_ptr[SIGTERM];

 # What a script has left behind, in bits.
int
traces()
  CODE:
    RETVAL = traces(aTHX);
  OUTPUT: RETVAL

 # Empties the buffer of STDOUT, which is what print writes to again, and is not flushed each time.
void
end_output()
  CODE:
    end_output(aTHX);

 # Whether something was written to descriptor 1 itself.
int
has_file()
  CODE:
    RETVAL = has_file();
  OUTPUT: RETVAL

 # What tells a file from the one that was there before it; undef when there is none.
SV *
stamp(const char *path)
  CODE:
    U64 words[STAMP_WORDS];
    if (!stamp_of(path, words)) XSRETURN_UNDEF;
    RETVAL = newSVpvn((const char *)words, sizeof words);
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
    variables all = variables_of(REQUEST(self));
    while (next_variable(&all)) store(aTHX_ (HV *)SvRV(into), &all);

 # The variables in a copy of a hash, and the request itself.
SV *
env_on(SV *self, SV *base)
  CODE:
    HV *env = env_on(aTHX_ REQUEST(self), (HV *)SvRV(base));
    (void)hv_stores(env, "hob.request", newSVsv(self));
    (void)hv_stores(env, "psgix.cleanup.handlers", newRV_noinc((SV *)newAV()));
    RETVAL = newRV_noinc((SV *)env);
  OUTPUT: RETVAL

 # Sends [status, fields, [bytes ...]]; false when it is not that simple.
int
send_array(SV *self, SV *response)
  CODE:
    RETVAL = send_array(aTHX_ REQUEST(self), response);
  OUTPUT: RETVAL

 # Sets variables in a hash with magic, as %ENV is, and those of two arrays of names and values, the
 # second of which has other values for some: only what differs. False when there are more in it.
int
set(SV *self, SV *into, SV *more, SV *instead)
  CODE:
    variables all = variables_of(REQUEST(self));
    HV *hash = (HV *)SvRV(into);
    AV *arrays[2] = {(AV *)SvRV(more), (AV *)SvRV(instead)};
    const variables given = all;
    UV count = 0;
    int which;
    if (set_if_as_left(aTHX_ hash, &given, arrays[1])) XSRETURN_IV(1);
    while (next_variable(&all)) {
        SSize_t at = 0, end = av_len(arrays[1]);
        for (; at < end; at += 2) {
            STRLEN bytes;
            const char *name = SvPV(*av_fetch(arrays[1], at, 0), bytes);
            if (bytes == all.name_bytes && memEQ(name, all.name, bytes)) break;
        }
        if (at > end || end < 0) set_one(aTHX_ hash, all.name, all.name_bytes, all.value, all.value_bytes);
        if (at > end || end < 0) count++;
    }
    for (which = 0; which < 2; which++) {
        SSize_t at, end = av_len(arrays[which]);
        for (at = 0; at < end; at += 2) {
            STRLEN name_bytes, value_bytes;
            const char *name = SvPV(*av_fetch(arrays[which], at, 0), name_bytes);
            const char *value = SvPV(*av_fetch(arrays[which], at + 1, 0), value_bytes);
            set_one(aTHX_ hash, name, name_bytes, value, value_bytes);
            count++;
        }
    }
    RETVAL = HvUSEDKEYS(hash) == count;
    if (RETVAL) remember_environment(aTHX_ hash, &given, arrays[1]);
  OUTPUT: RETVAL

 # Name and path of what is asked for, as they came: a key.
SV *
place(SV *self)
  CODE:
    request *it = REQUEST(self);
    size_t name_bytes = 0, path_bytes = 0;
    const char *name = lib.hob_indexed(it->handle, HOB_SCRIPT_NAME, &name_bytes);
    const char *path = lib.hob_indexed(it->handle, HOB_PATH_INFO, &path_bytes);
    RETVAL = newSVpvn(name ? name : "", name ? name_bytes + 1 : 1);
    sv_catpvn(RETVAL, path ? path : "", path ? path_bytes : 0);
  OUTPUT: RETVAL

 # The script for a request, as it is kept in the hash for the one that is current, with all made ready
 # for it; undef when it needs more than most.
SV *
usual(SV *self, SV *env, SV *current, SV *kept)
  CODE:
    SV *script = usual(aTHX_ REQUEST(self), (HV *)SvRV(env), current, (HV *)SvRV(kept));
    if (!script) XSRETURN_UNDEF;
    RETVAL = newSVsv(script);
  OUTPUT: RETVAL

 # Ends such a request: undef when all is done, else what the script has left behind.
SV *
finish_usual(SV *self, SV *script)
  CODE:
    int found;
    if (finish_usual(aTHX_ REQUEST(self), script, &found)) XSRETURN_UNDEF;
    RETVAL = newSViv(found);
  OUTPUT: RETVAL

 # Sends what a script has printed, head and all; false when it is not that simple.
int
send_printed(SV *self, SV *printed)
  CODE:
    RETVAL = send_printed(aTHX_ REQUEST(self), printed);
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

SV *
body_handle(SV *self)
  CODE:
    RETVAL = handle_on_body(aTHX_ SvRV(self));
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
