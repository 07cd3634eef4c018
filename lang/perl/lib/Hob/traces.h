/* What a script may leave behind, for Native.xs: asked for once per request, so that only what has
 * changed needs to be put back. And where its output goes: a layer under the buffer of STDOUT.
 */
#include <pthread.h>

/* What a script has left behind. */
#define FOLDER 1     /* it may have gone to another */
#define MASK 2       /* umask was called */
#define ALARM 4      /* alarm was called */
#define HANDLERS 8   /* of signals, warnings or death */
#define VARIABLES 16 /* special ones that are not as in a fresh process */
#define HANDLES 32   /* standard ones that are not as they were */
#define CHILD 64     /* this is a child that has run off the script's end */
#define FORKED 128   /* there was, or is, a child */

static volatile int touched;
static volatile int is_child;

/* ---- calls that leave something behind ---- */

static Perl_ppaddr_t real_chdir, real_umask, real_alarm, real_syscall;

static OP *watched_chdir(pTHX) {
    touched |= FOLDER;
    return real_chdir(aTHX);
}

static OP *watched_umask(pTHX) {
    touched |= MASK;
    return real_umask(aTHX);
}

static OP *watched_alarm(pTHX) {
    touched |= ALARM;
    return real_alarm(aTHX);
}

static OP *watched_syscall(pTHX) {
    touched |= FOLDER | MASK | ALARM;
    return real_syscall(aTHX);
}

static void watch_op(int op, Perl_ppaddr_t *real, Perl_ppaddr_t watched) {
    *real = PL_ppaddr[op];
    PL_ppaddr[op] = watched;
}

static void now_a_child(void) { is_child = 1; }

static void now_a_parent(void) { touched |= FORKED; }

/* ---- standard handles ---- */

#define HANDLE_COUNT 3
#define LAYER_COUNT 6
static struct {
    PerlIO *file;
    int layer_count;
    PerlIO_funcs *layers[LAYER_COUNT];
    U32 flags[LAYER_COUNT];
} standard[HANDLE_COUNT];

#define KEPT_FLAGS (PERLIO_F_UTF8 | PERLIO_F_CRLF)

static PerlIO *file_of(pTHX_ int at) {
    GV *handle = at == 0 ? PL_stdingv : gv_fetchpvn_flags(at == 1 ? "STDOUT" : "STDERR", 6, 0, SVt_PVIO);
    IO *io = handle ? GvIO(handle) : NULL;
    return io ? (at == 0 ? IoIFP(io) : IoOFP(io)) : NULL;
}

static void remember_handles(pTHX) {
    int at;
    for (at = 0; at < HANDLE_COUNT; at++) {
        PerlIO *layer = standard[at].file = file_of(aTHX_ at);
        int count = 0;
        for (; layer && *layer && count < LAYER_COUNT; layer = PerlIONext(layer), count++) {
            standard[at].layers[count] = PerlIOBase(layer)->tab;
            standard[at].flags[count] = PerlIOBase(layer)->flags & KEPT_FLAGS;
        }
        standard[at].layer_count = count;
    }
}

/* The same files with the same layers, on descriptors 0, 1 and 2. */
static int are_handles_kept(pTHX) {
    int at;
    for (at = 0; at < HANDLE_COUNT; at++) {
        PerlIO *layer = file_of(aTHX_ at);
        int count = 0;
        if (!layer || layer != standard[at].file || !*layer || PerlIO_fileno(layer) != at) return 0;
        for (; *layer; layer = PerlIONext(layer), count++)
            if (count >= standard[at].layer_count || PerlIOBase(layer)->tab != standard[at].layers[count]
                || (PerlIOBase(layer)->flags & KEPT_FLAGS) != standard[at].flags[count])
                return 0;
        if (count != standard[at].layer_count) return 0;
    }
    return 1;
}

/* ---- handlers and variables ---- */

static SV *term_handler;
static GV *list_separator, *subscript_separator;

static int has_handlers(pTHX) {
    static const int signals[] = {SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2};
    size_t at;
    if (PL_warnhook || PL_diehook || PL_psig_ptr[SIGTERM] != term_handler) return 1;
    /* Perl keeps an undefined value for one that was only looked at. */
    for (at = 0; at < sizeof signals / sizeof *signals; at++)
        if (PL_psig_ptr[signals[at]] && SvOK(PL_psig_ptr[signals[at]])) return 1;
    return 0;
}

static int is_text(SV *sv, char only) {
    return sv && SvPOK(sv) && !SvROK(sv) && SvCUR(sv) == 1 && *SvPVX(sv) == only;
}

/* $/ $\ $, $" $; and $^W as in a fresh process. */
static int are_variables_kept(pTHX) {
    SV *between = PL_ofsgv ? GvSV(PL_ofsgv) : NULL;
    return is_text(PL_rs, '\n') && is_text(get_sv("/", 0), '\n') && !PL_ors_sv && !(between && SvOK(between))
           && is_text(GvSV(list_separator), ' ') && is_text(GvSV(subscript_separator), '\034')
           && !(PL_dowarn & G_WARN_ON);
}

static int traces(pTHX) {
    int found = touched;
    touched = 0;
    if (has_handlers(aTHX)) found |= HANDLERS;
    if (!are_variables_kept(aTHX)) found |= VARIABLES;
    if (!are_handles_kept(aTHX)) found |= HANDLES;
    return is_child ? found | CHILD : found;
}

/* ---- output ---- */

/* Output as Hob::Scripts collects it, how far the script is (0: it runs, 1: it has ended, 2: and its
 * output has been here), and the file that is descriptor 1. */
static SV *output, *progress;
static int output_file = -1;
static int has_taken; /* something of that file went into the output */

#define SENT_BYTES_MIN 65536
#define BUFFER_BYTES 4096

static void call_scripts(pTHX_ const char *name) {
    dSP;
    PUSHMARK(SP);
    call_pv(name, G_VOID | G_DISCARD | G_NOARGS);
}

/* Whether something was written to descriptor 1 by others than Perl's buffer. */
static int has_file(void) { return output_file >= 0 && lseek(output_file, 0, SEEK_END) > 0; }

static SSize_t write_all(int fd, const char *bytes, Size_t count) {
    Size_t written = 0;
    while (written < count) {
        SSize_t more = write(fd, bytes + written, count - written);
        if (more < 0 && errno != EINTR) return -1;
        if (more > 0) written += more;
    }
    return written;
}

/* Full buffers are collected; one that is not full was flushed by the script, which means it. */
static SSize_t write_output(pTHX_ PerlIO *file, const void *bytes, Size_t count) {
    int is_ending = SvIV(progress) != 0;
    /* A child has no part in what is collected. Its descriptor 1 may be a pipe to its parent. */
    if (is_child && !is_ending) return write_all(PerlIO_fileno(file), bytes, count);
    if (has_file()) {
        has_taken = 1;
        call_scripts(aTHX_ "Hob::Scripts::_take_file");
    }
    sv_catpvn(output, (const char *)bytes, count);
    if (is_ending) sv_setiv(progress, 2);
    else if (count % BUFFER_BYTES || SvCUR(output) >= SENT_BYTES_MIN)
        call_scripts(aTHX_ "Hob::Scripts::_send_output");
    return count;
}

static IV stay(pTHX_ PerlIO *file) {
    PERL_UNUSED_ARG(file);
    return 0;
}

static PerlIO_funcs output_layer = {
    sizeof(PerlIO_funcs), "hob", sizeof(struct _PerlIO), PERLIO_K_BUFFERED, PerlIOBase_pushed,
    PerlIOBase_popped, NULL, /* binmode takes it not off */ stay, NULL, PerlIOBase_fileno, PerlIOBase_dup,
    NULL, NULL, write_output, NULL, NULL, PerlIOBase_close, /* nothing is kept here */ stay, NULL,
    PerlIOBase_eof, PerlIOBase_error, PerlIOBase_clearerr, PerlIOBase_setlinebuf, NULL, NULL, NULL, NULL,
    NULL,
};

/* Empties the buffer of STDOUT, which is what print writes to again, and is not flushed each time. */
static void end_output(pTHX) {
    GV *handle = gv_fetchpvs("STDOUT", GV_ADD, SVt_PVIO);
    IO *io = GvIOn(handle);
    if (PL_defoutgv != handle) setdefout(handle);
    IoFLAGS(io) &= ~IOf_FLUSH;
    if (IoOFP(io)) PerlIO_flush(IoOFP(io));
}

/* Begins to watch what scripts do. */
static void watch(pTHX_ SV *collected, SV *how_far) {
    output = SvREFCNT_inc(collected);
    progress = SvREFCNT_inc(how_far);
    term_handler = PL_psig_ptr[SIGTERM];
    list_separator = gv_fetchpvs("\"", GV_ADD, SVt_PV);
    subscript_separator = gv_fetchpvs(";", GV_ADD, SVt_PV);
    watch_op(OP_CHDIR, &real_chdir, watched_chdir);
    watch_op(OP_UMASK, &real_umask, watched_umask);
    watch_op(OP_ALARM, &real_alarm, watched_alarm);
    watch_op(OP_SYSCALL, &real_syscall, watched_syscall);
    pthread_atfork(NULL, now_a_parent, now_a_child);
    PerlIO_define_layer(aTHX_ &output_layer);
}
