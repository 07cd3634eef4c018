/* The loops of a warm host of Perl, and of the templates of its scripts: in C, because a line of
 * Perl writes to the memory of all that it names, which is copied after a fork, in the template and
 * in its child. What is seldom needed is in warm.pl.
 *
 * The template's variables stay as they were for one run, the reference. A child makes them what
 * its own run is.
 */
#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"
#include "reference.h"

/* What warm.pl expects of this module; it has the same number. */
#define INTERFACE 1

extern char **environ;

static struct warm_host *host;

/* ---- the host: what goes on to a template ---- */

enum { STAMP_BYTES = 52, FILES_MAX = 128, LINKS_TOLD_MAX = 256 };

/* A script that has a template, as its file was. */
struct file {
    char *name;
    char stamp[STAMP_BYTES];
    int template;
    UV used;
    size_t told_count;
    uint32_t told[LINKS_TOLD_MAX];
};

static struct file files[FILES_MAX];
static UV uses;

static struct file *file_of(const char *name) {
    for (size_t at = 0; at < FILES_MAX; at++) {
        if (files[at].name != NULL && strcmp(files[at].name, name) == 0)
            return &files[at];
    }
    return NULL;
}

/* As warm.pl takes it from the same structure. */
static void stamp_of(const struct statx *found, char *stamp) {
    const char *bytes = (const char *)found;
    memcpy(stamp, bytes + 32, 16);
    memcpy(stamp + 16, bytes + 96, 28);
    memcpy(stamp + 44, bytes + 136, 8);
}

static bool is_told(struct file *file, uint32_t link) {
    for (size_t at = 0; at < file->told_count; at++) {
        if (file->told[at] == link)
            return true;
    }
    return false;
}

/* Passes the run on to its script's template; false when it has none, or its file is another. */
static bool pass_on(void) {
    struct warm_run *run = &host->run;
    struct file *file = file_of(run->script);
    struct statx found;
    char stamp[STAMP_BYTES];
    if (file == NULL || statx(AT_FDCWD, run->script, 0, STATX_BASIC_STATS, &found) < 0)
        return false;
    stamp_of(&found, stamp);
    if (memcmp(stamp, file->stamp, STAMP_BYTES) != 0)
        return false;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int) * (WARM_FDS_MAX + 1))];
    } control;
    int fds[WARM_FDS_MAX + 1], count = run->fd_count;
    memcpy(fds, run->fds, sizeof(int) * (size_t)count);
    bool is_new = !is_told(file, run->link_number);
    if (is_new && file->told_count == LINKS_TOLD_MAX)
        return false;
    if (is_new)
        fds[count++] = run->link;
    memcpy(host->packet + 28, &run->link_number, sizeof run->link_number);
    struct iovec vector = {host->packet, run->packet_bytes};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control};
    message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
    control.head.cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * (size_t)count);
    if (sendmsg(file->template, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return false;
    if (is_new)
        file->told[file->told_count++] = run->link_number;
    file->used = ++uses;
    warm_let_go(run);
    return true;
}

/* ---- a template: variables ---- */

static struct warm_reference reference;
static char *template_folder;
static uint64_t cpu_seconds;
static bool has_data;
static int own_base;
static struct {
    uint32_t number;
    int fd;
} links[LINKS_TOLD_MAX];
static size_t link_count;

static void set_variable(pTHX_ const char *variable) {
    STRLEN length = warm_name_bytes(variable);
    const char *value = variable + length + (variable[length] == '=');
    SV **place = hv_fetch(GvHVn(PL_envgv), variable, (I32)length, 1);
    if (place != NULL)
        sv_setpvn_mg(*place, value, strlen(value));
}

static void delete_variable(pTHX_ const char *variable) {
    (void)hv_delete(GvHVn(PL_envgv), variable, (I32)warm_name_bytes(variable), G_DISCARD);
}

/* Makes %ENV the run's, as far as it is noted to differ. */
static void change_variables(pTHX) {
    const uint16_t *mark = host->marks;
    for (; *mark != UINT16_MAX; mark++)
        set_variable(aTHX_ host->run.variables[*mark]);
    for (mark++; *mark != UINT16_MAX; mark++)
        delete_variable(aTHX_ reference.variables[*mark]);
}

/* Makes %ENV and @ARGV the run's. */
static void settle(pTHX) {
    struct warm_run *run = &host->run;
    for (size_t at = 0; at < reference.variable_count; at++) {
        if (!warm_has_name(run->variables, run->variable_count, reference.variables[at]) &&
            !warm_is_fixed(&reference, reference.variables[at]))
            delete_variable(aTHX_ reference.variables[at]);
    }
    for (size_t at = 0; at < run->variable_count; at++) {
        if (!warm_is_fixed(&reference, run->variables[at]))
            set_variable(aTHX_ run->variables[at]);
    }
    AV *arguments = GvAVn(PL_argvgv);
    av_clear(arguments);
    for (size_t at = 1; at < run->argument_count; at++)
        av_push(arguments, newSVpv(run->arguments[at], 0));
}

/* ---- the end of a child ---- */

static thrhook_proc_t previous_hook;

/* Whether the end of an object of this class can be seen: its destructor does something. */
static bool ends_visibly(pTHX_ HV *class) {
    if (HvNAME(class) == NULL)
        return true;
    GV *found = gv_fetchmeth_pvn(class, "DESTROY", 7, -1, 0);
    if (found == NULL)
        return gv_fetchmeth_pvn(class, "AUTOLOAD", 8, -1, 0) != NULL;
    CV *destructor = isGV(found) ? GvCV(found) : NULL;
    if (destructor == NULL || CvISXSUB(destructor))
        return destructor == NULL || !CvCONST(destructor);
    OP *first = CvSTART(destructor);
    return first == NULL || first->op_next == NULL || first->op_next->op_type != OP_LEAVESUB;
}

/* Whether closing a handle tells that it could not be written. */
static bool has_failed(pTHX_ IO *handle) {
    return (IoOFP(handle) != NULL && PerlIO_error(IoOFP(handle))) ||
           (IoIFP(handle) != NULL && PerlIO_error(IoIFP(handle)));
}

/* Whether some object's end can be seen. Only read: perl itself counts references on its way. */
static bool has_visible_ends(pTHX) {
    HV *seen[4] = {NULL, NULL, NULL, NULL};
    size_t next = 0;
    for (SV *arena = PL_sv_arenaroot; arena != NULL; arena = MUTABLE_SV(SvANY(arena))) {
        const SV *stop = arena + SvREFCNT(arena);
        for (SV *sv = arena + 1; sv < stop; sv++) {
            if (SvIS_FREED(sv) || SvREFCNT(sv) == 0 || !SvOBJECT(sv))
                continue;
            if (SvTYPE(sv) == SVt_PVIO && has_failed(aTHX_ (IO *)sv))
                return true;
            HV *class = SvSTASH(sv);
            if (class == seen[0] || class == seen[1] || class == seen[2] || class == seen[3])
                continue;
            if (class == NULL || ends_visibly(aTHX_ class))
                return true;
            seen[next++ % 4] = class;
        }
    }
    return false;
}

/* Whether a handle is a pipe to a process, which would be waited for. */
static bool has_pipes(pTHX) {
    if (PL_fdpid == NULL)
        return false;
    for (SSize_t at = 0; at <= AvFILLp(PL_fdpid); at++) {
        SV *process = AvARRAY(PL_fdpid)[at];
        if (process != NULL && SvIOK(process) && SvIVX(process) > 0)
            return true;
    }
    return false;
}

/* Perl asks this when END blocks have run and all is flushed, before it takes itself apart. That is
 * left out when nobody could see it: it would write to most of the memory there is. */
static int leaves_at_once(pTHX) {
    static const char *const layers[] = {"PerlIO/via.pm", "PerlIO/encoding.pm"};
    HV *loaded = GvHVn(PL_incgv);
    for (size_t at = 0; at < sizeof layers / sizeof *layers; at++) {
        if (hv_exists(loaded, layers[at], (I32)strlen(layers[at])))
            return previous_hook(aTHX);
    }
    if (PL_perl_destruct_level != 0 || PL_exitlistlen != 0 || has_pipes(aTHX) ||
        PerlIO_flush(NULL) != 0 || has_visible_ends(aTHX))
        return previous_hook(aTHX);
    /* Compiled modules may want to see the end of the process; libc's own have nothing to do. */
    AV *modules = get_av("DynaLoader::dl_librefs", 0);
    if (modules != NULL && AvFILLp(modules) >= 0)
        return 1;
    fflush(NULL);
    _exit(STATUS_EXIT & 0xff);
}

static void end_quickly(pTHX) {
    previous_hook = PL_threadhook;
    PL_threadhook = leaves_at_once;
}

/* ---- a child ---- */

static void become(pTHX_ bool is_similar, time_t now) {
    struct warm_run *run = &host->run;
    int error = warm_become(run, cpu_seconds);
    if (error != 0) {
        warm_tell_failed(run, DESCRIPTORS, error);
        _exit(127);
    }
    if (strcmp(run->folder, template_folder) != 0 && chdir(run->folder) < 0) {
        warm_tell_failed(run, CHANGE_FOLDER, errno);
        _exit(127);
    }
    warm_close_received(run);
    warm_close((unsigned)own_base - 1, UINT_MAX);
    if (is_similar)
        change_variables(aTHX);
    else
        settle(aTHX);
    PL_basetime = now;
    /* Whoever wants random numbers seeds them. */
    PL_srand_called = FALSE;
    PL_statusvalue = 0;
    end_quickly(aTHX);
    errno = 0;
}

/* The link that a run is told over: it comes once, with the first. */
static bool find_link(struct warm_run *run) {
    int usual = run->flags & WARM_IN_MEMORY ? 4 : 3;
    if (run->fd_count > usual) {
        int fd = warm_own(run->fds[--run->fd_count], own_base);
        if (link_count < LINKS_TOLD_MAX) {
            links[link_count].number = run->passed_number;
            links[link_count++].fd = fd;
        }
    }
    for (size_t at = 0; at < link_count; at++) {
        if (links[at].number == run->passed_number) {
            run->link = links[at].fd;
            return true;
        }
    }
    return false;
}

/* Forks for the run that has come; true in the child. */
static bool start(pTHX) {
    struct warm_run *run = &host->run;
    if (!find_link(run)) {
        warm_let_go(run);
        return false;
    }
    bool is_similar = warm_is_similar(host, &reference);
    if (is_similar) {
        reference.strangers = 0;
    } else if (reference.strings == NULL || ++reference.strangers > WARM_STRANGERS_MAX) {
        settle(aTHX);
        if (!warm_refer(&reference, run)) {
            warm_fail(run, FORK, ENOMEM);
            return false;
        }
        is_similar = warm_is_similar(host, &reference);
    }
    if (!warm_make_room(host)) {
        warm_fail(run, FORK, ENOMEM);
        return false;
    }
    time_t now = time(NULL);
    pid_t process = PerlProc_fork();
    if (process == 0) {
        become(aTHX_ is_similar, now);
        return true;
    }
    if (process < 0)
        warm_fail(run, FORK, errno);
    else
        warm_started(host, process);
    return false;
}

MODULE = Hob::Warm  PACKAGE = Hob::Warm

PROTOTYPES: DISABLE

int
interface()
  CODE:
    RETVAL = INTERFACE;
  OUTPUT:
    RETVAL

void
native_begin(int first, int base)
  CODE:
    host = warm_begin(first, base);
    if (host == NULL)
        croak("memory for the host: %s\n", strerror(errno));
    host->has_others = true;

# What is for Perl: nothing at the end; 1, link, bytes, descriptors for a run, which stands in the
# buffer; 2, process, status for a process that is no run.
void
native_wait(SV *buffer)
  PPCODE:
    for (;;) {
        enum warm_event event = warm_wait(host);
        if (event == WARM_OVER)
            XSRETURN_EMPTY;
        if (event == WARM_OTHER) {
            EXTEND(SP, 3);
            mPUSHi(2);
            mPUSHi(host->other);
            mPUSHi(host->other_status);
            XSRETURN(3);
        }
        if (event == WARM_HAS_RUN && !pass_on()) {
            struct warm_run *run = &host->run;
            memcpy(SvGROW(buffer, WARM_PACKET_BYTES_MAX + 1), host->packet, run->packet_bytes);
            EXTEND(SP, 3 + run->fd_count);
            mPUSHi(1);
            mPUSHi(run->link);
            mPUSHi((IV)run->packet_bytes);
            for (int at = 0; at < run->fd_count; at++)
                mPUSHi(run->fds[at]);
            XSRETURN(3 + run->fd_count);
        }
        if (event == WARM_SENSELESS || event == WARM_NO_MEMORY)
            croak("the server makes no sense to this host\n");
        PERL_ASYNC_CHECK();
    }

# Perl has forked for the run that came last, or has given it up.
void
native_started(IV process)
  CODE:
    if (process > 0)
        warm_make_room(host) ? warm_started(host, (pid_t)process) : warm_let_go(&host->run);
    else
        warm_let_go(&host->run);

# Whether the run that came last went on to its script's template.
bool
native_pass()
  CODE:
    RETVAL = pass_on();
  OUTPUT:
    RETVAL

# From now on runs of this script go to that template.
void
native_direct(const char *name, SV *stamp, int fd)
  CODE:
    STRLEN length;
    const char *bytes = SvPV(stamp, length);
    struct file *file = file_of(name);
    for (size_t at = 0; file == NULL && at < FILES_MAX; at++) {
        if (files[at].name == NULL)
            file = &files[at];
    }
    if (file != NULL && length == STAMP_BYTES) {
        free(file->name);
        file->name = strdup(name);
        memcpy(file->stamp, bytes, STAMP_BYTES);
        file->template = fd;
        file->used = ++uses;
        file->told_count = 0;
    }

void
native_forget(const char *name)
  CODE:
    struct file *file = file_of(name);
    if (file != NULL) {
        free(file->name);
        file->name = NULL;
    }

UV
native_used(const char *name)
  CODE:
    struct file *file = file_of(name);
    RETVAL = file == NULL ? 0 : file->used;
  OUTPUT:
    RETVAL

# In a template: what is not the run's alone are the names that follow.
void
native_template(int socket, int base, const char *folder, UV seconds, bool reads_data, ...)
  CODE:
    has_data = reads_data;
    own_base = base;
    cpu_seconds = seconds;
    template_folder = strdup(folder);
    reference.leaves_fixed = true;
    reference.fixed = calloc((size_t)items, sizeof *reference.fixed);
    for (int at = 5; reference.fixed != NULL && at < items; at++)
        reference.fixed[reference.fixed_count++] = strdup(SvPV_nolen(ST(at)));
    host = warm_begin(socket, base);
    if (host == NULL || template_folder == NULL)
        croak("memory for the template: %s\n", strerror(errno));
    /* What each child would have to find or make: methods, the buffer of standard output. */
    (void)has_visible_ends(aTHX);
    (void)PerlIO_get_base(PerlIO_stdout());

# Returns in a child: whether it has text behind the script.
bool
native_serve()
  CODE:
    /* A block that has run is freed, by each child. */
    SvREFCNT_inc_simple_void(find_runcv(NULL));
    for (;;) {
        enum warm_event event = warm_wait(host);
        if (event == WARM_HAS_RUN && start(aTHX))
            break;
        if (event == WARM_OVER)
            _exit(0);
        if (event == WARM_SENSELESS || event == WARM_NO_MEMORY)
            croak("the host makes no sense to this template\n");
        PERL_ASYNC_CHECK();
    }
    RETVAL = has_data;
  OUTPUT:
    RETVAL

# In a child: perl takes itself apart only if that can be seen.
void
native_end()
  CODE:
    end_quickly(aTHX);
