/* The part of a warm host that is the same in every language: it waits for runs, tells how they
 * ended, and makes a child what the kernel is to see. What is said is drawn in
 * crates/server/src/handle/warm/protocol.rs. Forking, and all that the interpreter has to be told,
 * is the language's.
 *
 * After a fork each page that is written is copied or at least faulted in, by both sides. So all
 * that a host writes between two forks stands together: the struct with the packet behind it, for a
 * run of usual size one page.
 */
#ifndef HOB_WARM_HOST_H
#define HOB_WARM_HOST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WARM_LINK = 1, WARM_RUN = 2, WARM_READY = 32, WARM_ENDED = 33, WARM_FAILED = 34 };
enum { WARM_IN_MEMORY = 1, WARM_STDIN_IS_FILE = 2 };
enum warm_step { READ_STRINGS, FORK, DESCRIPTORS, CHANGE_FOLDER, READ_SCRIPT, EXECUTE };
enum warm_event {
    WARM_OVER,
    WARM_HAS_RUN,
    WARM_OTHER,
    WARM_INTERRUPTED,
    WARM_SENSELESS,
    WARM_NO_MEMORY
};

enum {
    WARM_VERSION = 1,
    WARM_HEAD_BYTES = 16,
    WARM_RUN_BYTES = 32,
    WARM_ENDED_BYTES = 80,
    WARM_PACKET_BYTES_MAX = 100 * 1024,
    /* The bell, the first link, and one for each thread of the server. */
    WARM_LINKS_MAX = 4096,
    /* Standard streams, strings, and the link that comes with what is passed on. */
    WARM_FDS_MAX = 5,
    /* Pointers that have their place before the packet. */
    WARM_WORDS = 96,
    WARM_MARKS = 64,
    WARM_POINTERS_MAX = WARM_PACKET_BYTES_MAX,
};

/* A run that has begun. */
struct warm_child {
    pid_t process;
    int link;
    uint64_t number;
};

/* A run that is to begin. */
struct warm_run {
    uint64_t number;
    int link;
    /* Never another's: that of the link it came over, and what stands in the packet. */
    uint32_t link_number, passed_number;
    int fd_count, fds[WARM_FDS_MAX];
    size_t packet_bytes;
    uint16_t flags;
    uint32_t argument_count, variable_count, string_bytes;
    /* Its script and folder, each with a NUL. */
    const char *script, *folder;
    /* Arguments, then variables, then NULL for each list: argument_count + variable_count + 2. */
    char **arguments, **variables;
    /* Memory of its own, when it came in memory. */
    char *mapped;
};

struct warm_host {
    struct warm_run run;
    /* Readable when a child has ended. */
    int bell;
    /* The bell, the first link while there is one, the other links. */
    nfds_t poll_count;
    struct pollfd polled[8];
    struct pollfd *polls;
    uint32_t numbered[8], *numbers, link_count;
    size_t poll_room;
    bool has_first;
    int base;
    /* The language has processes that are no runs, and is told of the last that ended. There may be
     * more of all kinds. */
    bool has_others, has_more;
    pid_t other;
    int other_status;
    struct warm_child *children;
    size_t child_count, child_room;
    struct warm_child few[16];
    /* Of strings; so many more are kept free behind the variables, for the language. */
    char **pointers;
    size_t pointer_room, spare_pointers;
    /* What the language finds out about a run before it forks. */
    uint16_t marks[WARM_MARKS];
    char *words[WARM_WORDS];
    char packet[WARM_PACKET_BYTES_MAX];
};

static inline uint32_t warm_u32(const char *at) {
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static inline uint64_t warm_u64(const char *at) {
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static inline void warm_tell(int link, const char *packet, size_t length) {
    /* Who is gone shows that when read. */
    (void)!send(link, packet, length, MSG_NOSIGNAL);
}

static inline void warm_head(char *packet, uint8_t kind, uint16_t step, uint32_t error,
                             uint64_t number) {
    packet[0] = WARM_VERSION;
    packet[1] = (char)kind;
    memcpy(packet + 2, &step, sizeof step);
    memcpy(packet + 4, &error, sizeof error);
    memcpy(packet + 8, &number, sizeof number);
}

/* Says that a run did not run. */
static inline void warm_tell_failed(const struct warm_run *run, enum warm_step step, int error) {
    char packet[WARM_HEAD_BYTES];
    warm_head(packet, WARM_FAILED, (uint16_t)step, (uint32_t)(error ? error : EIO), run->number);
    warm_tell(run->link, packet, sizeof packet);
}

static inline void warm_tell_ended(const struct warm_child *child, int status,
                                   const struct rusage *used) {
    char packet[WARM_ENDED_BYTES];
    warm_head(packet, WARM_ENDED, 0, 0, child->number);
    uint32_t small[2] = {(uint32_t)status, (uint32_t)child->process};
    uint64_t large[7] = {
        (uint64_t)used->ru_maxrss,
        (uint64_t)used->ru_utime.tv_sec * 1000000 + (uint64_t)used->ru_utime.tv_usec,
        (uint64_t)used->ru_stime.tv_sec * 1000000 + (uint64_t)used->ru_stime.tv_usec,
        (uint64_t)used->ru_majflt,
        (uint64_t)used->ru_minflt,
        (uint64_t)used->ru_nvcsw,
        (uint64_t)used->ru_nivcsw,
    };
    memcpy(packet + 16, small, sizeof small);
    memcpy(packet + 24, large, sizeof large);
    warm_tell(child->link, packet, sizeof packet);
}

/* ---- links ---- */

static inline bool warm_add_poll(struct warm_host *host, int fd) {
    if (host->poll_count == host->poll_room) {
        size_t room = host->poll_room * 2;
        struct pollfd *polls = malloc(room * sizeof *polls);
        uint32_t *numbers = malloc(room * sizeof *numbers);
        if (polls == NULL || numbers == NULL || room > WARM_LINKS_MAX) {
            free(polls);
            free(numbers);
            return false;
        }
        memcpy(polls, host->polls, host->poll_count * sizeof *polls);
        memcpy(numbers, host->numbers, host->poll_count * sizeof *numbers);
        if (host->polls != host->polled) {
            free(host->polls);
            free(host->numbers);
        }
        host->polls = polls;
        host->numbers = numbers;
        host->poll_room = room;
    }
    host->numbers[host->poll_count] = host->link_count++;
    host->polls[host->poll_count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    return true;
}

/* The same descriptor at this number or above, closed on exec. */
static inline int warm_own(int fd, int base) {
    int own = base > 0 ? fcntl(fd, F_DUPFD_CLOEXEC, base) : -1;
    if (own < 0)
        return fd;
    close(fd);
    return own;
}

/* The host's memory, and a bell for children that end; its descriptors stand from `base` on, when
 * that is not 0. NULL with errno. From here on SIGCHLD is blocked: a child unblocks it. */
static inline struct warm_host *warm_begin(int first, int base) {
    struct warm_host *host =
        mmap(NULL, sizeof *host, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED)
        return NULL;
    host->polls = host->polled;
    host->numbers = host->numbered;
    host->base = base;
    host->poll_room = sizeof host->polled / sizeof *host->polled;
    host->children = host->few;
    host->child_room = sizeof host->few / sizeof *host->few;
    host->pointers = host->words;
    host->pointer_room = WARM_WORDS;
    host->has_first = true;
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &ended, NULL);
    int bell = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
    if (bell < 0)
        return NULL;
    host->bell = warm_own(bell, base);
    fcntl(first, F_SETFD, FD_CLOEXEC);
    warm_add_poll(host, host->bell);
    warm_add_poll(host, first);
    return host;
}

static inline void warm_lose_link(struct warm_host *host, nfds_t at) {
    if (at == 1 && host->has_first)
        host->has_first = false;
    close(host->polls[at].fd);
    host->polls[at] = host->polls[--host->poll_count];
    host->numbers[at] = host->numbers[host->poll_count];
}

/* ---- children ---- */

static inline bool warm_is_run(struct warm_host *host, pid_t process, int status,
                               const struct rusage *used) {
    for (size_t at = 0; at < host->child_count; at++) {
        if (host->children[at].process != process)
            continue;
        warm_tell_ended(&host->children[at], status, used);
        host->children[at] = host->children[--host->child_count];
        return true;
    }
    return false;
}

/* Tells of those that have ended; true when one is for the language. Orphans of a namespace come
 * here too. */
static inline bool warm_reap(struct warm_host *host) {
    struct signalfd_siginfo told[8];
    (void)!read(host->bell, told, sizeof told);
    bool waits = host->has_others || getpid() == 1;
    struct rusage used;
    int status;
    pid_t process;
    host->has_more = false;
    while ((host->child_count > 0 || waits) && (process = wait4(-1, &status, WNOHANG, &used)) > 0) {
        if (warm_is_run(host, process, status, &used) || !host->has_others)
            continue;
        host->other = process;
        host->other_status = status;
        host->has_more = true;
        return true;
    }
    return false;
}

/* Makes sure that there is room for one more child: before it is forked. */
static inline bool warm_make_room(struct warm_host *host) {
    if (host->child_count < host->child_room)
        return true;
    size_t room = host->child_room * 2;
    struct warm_child *children = malloc(room * sizeof *children);
    if (children == NULL)
        return false;
    memcpy(children, host->children, host->child_count * sizeof *children);
    if (host->children != host->few)
        free(host->children);
    host->children = children;
    host->child_room = room;
    return true;
}

/* Those that came with a packet: mostly neighbours. */
static inline void warm_close_received(struct warm_run *run) {
    int last = run->fd_count - 1;
    if (last > 0 && run->fds[last] - run->fds[0] == last &&
        syscall(SYS_close_range, run->fds[0], run->fds[last], 0) == 0)
        run->fd_count = 0;
    while (run->fd_count > 0)
        close(run->fds[--run->fd_count]);
}

/* The run needs nothing more here. */
static inline void warm_let_go(struct warm_run *run) {
    warm_close_received(run);
    if (run->mapped != NULL)
        munmap(run->mapped, run->string_bytes);
    run->mapped = NULL;
}

static inline void warm_fail(struct warm_run *run, enum warm_step step, int error) {
    warm_tell_failed(run, step, error);
    warm_let_go(run);
}

/* In the host: the run is this process. */
static inline void warm_started(struct warm_host *host, pid_t process) {
    struct warm_run *run = &host->run;
    host->children[host->child_count++] = (struct warm_child){process, run->link, run->number};
    warm_let_go(run);
}

/* ---- runs ---- */

/* Takes the strings apart; an error number, or 0. */
static inline int warm_take_apart(struct warm_host *host, size_t length) {
    struct warm_run *run = &host->run;
    char *packet = host->packet;
    memcpy(&run->flags, packet + 2, sizeof run->flags);
    run->number = warm_u64(packet + 8);
    run->argument_count = warm_u32(packet + 16);
    run->variable_count = warm_u32(packet + 20);
    run->string_bytes = warm_u32(packet + 24);
    run->passed_number = warm_u32(packet + 28);
    run->mapped = NULL;
    char *at = packet + WARM_RUN_BYTES;
    bool is_in_memory = run->flags & WARM_IN_MEMORY;
    if (run->fd_count < (is_in_memory ? 4 : 3) || run->string_bytes == 0 ||
        run->argument_count > WARM_POINTERS_MAX || run->variable_count > WARM_POINTERS_MAX ||
        (!is_in_memory && run->string_bytes != length - WARM_RUN_BYTES))
        return EINVAL;
    if (is_in_memory) {
        at = mmap(NULL, run->string_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, run->fds[3], 0);
        if (at == MAP_FAILED)
            return errno;
        run->mapped = at;
    }
    char *stop = at + run->string_bytes;
    if (stop[-1] != 0)
        return EINVAL;
    size_t wanted = (size_t)run->argument_count + run->variable_count + 2;
    size_t room = wanted + host->spare_pointers;
    if (room > host->pointer_room) {
        char **pointers = malloc(room * sizeof *pointers);
        if (pointers == NULL)
            return ENOMEM;
        if (host->pointers != host->words)
            free(host->pointers);
        host->pointers = pointers;
        host->pointer_room = room;
    }
    run->arguments = host->pointers;
    run->variables = host->pointers + run->argument_count + 1;
    size_t count = 0;
    for (; at < stop && count < wanted; count++) {
        size_t place = count < 2 ? 0 : count - 2 + (count - 2 >= run->argument_count);
        if (count == 0)
            run->script = at;
        else if (count == 1)
            run->folder = at;
        else
            host->pointers[place] = at;
        at += strlen(at) + 1;
    }
    run->arguments[run->argument_count] = run->variables[run->variable_count] = NULL;
    return at == stop && count == wanted ? 0 : EINVAL;
}

static inline enum warm_event warm_receive(struct warm_host *host, nfds_t at, bool *has_come) {
    struct warm_run *run = &host->run;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int) * WARM_FDS_MAX)];
    } control;
    struct iovec vector = {host->packet, sizeof host->packet};
    struct msghdr message = {
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    int link = host->polls[at].fd;
    ssize_t length = recvmsg(link, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *has_come = false;
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return WARM_HAS_RUN;
    run->link = link;
    run->fd_count = 0;
    struct cmsghdr *told = length < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (told != NULL && told->cmsg_level == SOL_SOCKET && told->cmsg_type == SCM_RIGHTS) {
        run->fd_count = (int)((told->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(run->fds, CMSG_DATA(told), sizeof(int) * (size_t)run->fd_count);
    }
    if (length <= 0) {
        warm_lose_link(host, at);
        return WARM_HAS_RUN;
    }
    uint8_t kind =
        length >= WARM_HEAD_BYTES && host->packet[0] == WARM_VERSION ? (uint8_t)host->packet[1] : 0;
    if (kind == WARM_LINK && run->fd_count == 1 && at == 1 && host->has_first)
        return warm_add_poll(host, warm_own(run->fds[0], host->base)) ? WARM_HAS_RUN
                                                                      : WARM_NO_MEMORY;
    if (kind != WARM_RUN || length < WARM_RUN_BYTES)
        return WARM_SENSELESS;
    run->link_number = host->numbers[at];
    run->packet_bytes = (size_t)length;
    int error = warm_take_apart(host, (size_t)length);
    if (error != 0)
        warm_fail(run, READ_STRINGS, error);
    *has_come = error == 0;
    return WARM_HAS_RUN;
}

/* Waits for a run, and does all else meanwhile. */
static inline enum warm_event warm_wait(struct warm_host *host) {
    while (host->has_first || host->child_count > 0) {
        if (poll(host->polls, host->poll_count, host->has_more ? 0 : -1) < 0) {
            if (errno == EINTR)
                return WARM_INTERRUPTED;
            continue;
        }
        if ((host->polls[0].revents || host->has_more) && warm_reap(host))
            return WARM_OTHER;
        for (nfds_t at = 1; at < host->poll_count; at++) {
            if (!host->polls[at].revents)
                continue;
            bool has_come;
            enum warm_event event = warm_receive(host, at, &has_come);
            /* What else is ready is so at the next look too. */
            if (has_come || event != WARM_HAS_RUN)
                return event;
        }
    }
    return WARM_OVER;
}

/* ---- the child ---- */

/* Makes a child what the kernel is to see: its number, its group, its standard streams, its limit
 * of CPU time. An error number, or 0. All calls go through one function of libc, so that a child
 * needs one page of it. */
static inline int warm_become(const struct warm_run *run, uint64_t cpu_seconds) {
    uint64_t mark[2] = {run->number, run->number}, cpu[2] = {cpu_seconds, cpu_seconds};
    uint64_t ended = (uint64_t)1 << (SIGCHLD - 1);
    syscall(SYS_prlimit64, 0, RLIMIT_LOCKS, mark, NULL);
    syscall(SYS_setpgid, 0, 0);
    for (int fd = 0; fd < 3; fd++) {
        if (syscall(SYS_dup3, run->fds[fd], fd, 0) < 0)
            return errno;
    }
    if (cpu_seconds != 0 && syscall(SYS_prlimit64, 0, RLIMIT_CPU, cpu, NULL) < 0)
        return errno;
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &ended, NULL, sizeof ended);
    return 0;
}

/* Closes a range of descriptors, both ends included. */
static inline void warm_close(unsigned first, unsigned last) {
    if (syscall(SYS_close_range, first, last, 0) == 0)
        return;
    long limit = sysconf(_SC_OPEN_MAX);
    for (unsigned fd = first; fd <= last && fd < (unsigned long)limit; fd++)
        close((int)fd);
}

/* ---- files ---- */

/* By what it is known that a file is another. */
struct warm_stamp {
    uint64_t changed[4], size, inode, device;
};

static inline int warm_look(const char *file, struct warm_stamp *stamp) {
    struct stat found;
    if (stat(file, &found) < 0)
        return errno;
    *stamp = (struct warm_stamp){
        {(uint64_t)found.st_mtim.tv_sec, (uint64_t)found.st_mtim.tv_nsec,
         (uint64_t)found.st_ctim.tv_sec, (uint64_t)found.st_ctim.tv_nsec},
        (uint64_t)found.st_size,
        (uint64_t)found.st_ino,
        (uint64_t)found.st_dev,
    };
    return 0;
}

#endif
