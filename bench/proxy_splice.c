/* Passing bodies on from one socket to another: by read and send, and by splice through a pipe.
 *
 *     proxy_splice ROUNDS SECONDS
 *
 * A process writes a body to a connection over loopback, another one reads it from a second one and asks
 * for the next. The process between moves it, waiting by epoll, and is what is measured: microseconds of
 * CPU time (getrusage) and system calls for each body. Rounds are interleaved; each line is the median. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 99

/* How bytes are moved: `piece` a read, or by a pipe of `pipe_bytes`. */
struct way {
    const char *name;
    size_t piece, pipe_bytes;
};

static const struct way ways[] = {
    {"read 64 KiB, send", 65536, 0},
    {"read 256 KiB, send", 262144, 0},
    {"splice, pipe of 64 KiB", 0, 65536},
    {"splice, pipe of 256 KiB", 0, 262144},
    {"splice, pipe of 1 MiB", 0, 1048576},
};
static const size_t bodies[] = {65536, 262144, 1048576, 4194304};
enum { WAYS = sizeof ways / sizeof *ways, BODIES = sizeof bodies / sizeof *bodies };

static char *memory;
static long calls;

static void fail(const char *what) {
    perror(what);
    kill(0, SIGTERM);
    exit(1);
}

/* Two ends of a connection over loopback. */
static void connection(int ends[2]) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (bind(listener, (void *)&at, len) || listen(listener, 1) || getsockname(listener, (void *)&at, &len)) fail("listen");
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (void *)&at, len)) fail("connect");
    ends[1] = accept(listener, NULL, NULL);
    for (int n = 0; n < 2; n++) setsockopt(ends[n], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    close(listener);
}

/* Writes a body for each byte of `asked`. */
static void feed(int to, int asked, size_t body) {
    char byte;
    while (read(asked, &byte, 1) == 1)
        for (size_t sent = 0; sent < body;) {
            ssize_t count = write(to, memory + sent, body - sent);
            if (count <= 0) exit(0);
            sent += (size_t)count;
        }
    exit(0);
}

/* Reads bodies, and asks for the next. */
static void drain(int from, int ask, size_t body) {
    static char room[262144];
    for (size_t left = body; write(ask, "", 1) == 1; left = body)
        while (left > 0) {
            ssize_t count = read(from, room, left < sizeof room ? left : sizeof room);
            if (count <= 0) exit(0);
            left -= (size_t)count;
        }
    exit(0);
}

static void await(int set, int descriptor, unsigned events) {
    struct epoll_event event = {.events = events | EPOLLONESHOT, .data.fd = descriptor};
    epoll_ctl(set, EPOLL_CTL_MOD, descriptor, &event);
    epoll_wait(set, &event, 1, -1);
    calls += 2;
}

static int must_wait(ssize_t count) {
    calls++;
    if (count < 0 && errno != EAGAIN) fail("moving");
    return count < 0;
}

/* Moves one body. */
static void move(const struct way *way, int set, int from, int to, const int through[2], size_t body) {
    size_t left = body, held = 0, sent = 0;
    while (left + held > 0) {
        if (held == 0) {
            size_t most = way->pipe_bytes ? way->pipe_bytes : way->piece;
            size_t want = left < most ? left : most;
            ssize_t count = way->pipe_bytes ? splice(from, NULL, through[1], NULL, want, SPLICE_F_MOVE | SPLICE_F_NONBLOCK)
                                            : recv(from, memory, want, 0);
            if (must_wait(count)) {
                await(set, from, EPOLLIN);
                continue;
            }
            if (count == 0) fail("ended early");
            held = (size_t)count, left -= held, sent = 0;
        }
        unsigned more = left ? SPLICE_F_MORE : 0;
        ssize_t count = way->pipe_bytes ? splice(through[0], NULL, to, NULL, held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK | more)
                                        : send(to, memory + sent, held, MSG_NOSIGNAL);
        if (must_wait(count)) {
            await(set, to, EPOLLOUT);
            continue;
        }
        held -= (size_t)count, sent += (size_t)count;
    }
}

static double cpu_us(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Microseconds of CPU time a body, and system calls. */
static double run(const struct way *way, size_t body, double seconds, double *calls_each) {
    int in[2], out[2], ask[2], through[2] = {-1, -1}, set = epoll_create1(0);
    connection(in), connection(out);
    if (pipe(ask)) fail("pipe");
    if (way->pipe_bytes) {
        if (pipe2(through, O_NONBLOCK)) fail("pipe");
        if (fcntl(through[0], F_SETPIPE_SZ, (int)way->pipe_bytes) < 0) fail("F_SETPIPE_SZ");
    }
    pid_t feeder = fork();
    if (feeder == 0) close(in[1]), close(out[0]), close(out[1]), close(ask[1]), feed(in[0], ask[0], body);
    pid_t reader = fork();
    if (reader == 0) close(in[0]), close(in[1]), close(out[0]), close(ask[0]), drain(out[1], ask[1], body);
    close(in[0]), close(out[1]), close(ask[0]), close(ask[1]);
    int from = in[1], to = out[0];
    struct epoll_event none = {0};
    for (int n = 0; n < 2; n++) {
        int one = n ? to : from;
        fcntl(one, F_SETFL, O_NONBLOCK);
        epoll_ctl(set, EPOLL_CTL_ADD, one, &none);
    }
    for (int n = 0; n < 20; n++) move(way, set, from, to, through, body);
    long count = 0;
    double begin = cpu_us(), end = now_s() + seconds;
    calls = 0;
    while (now_s() < end) move(way, set, from, to, through, body), count++;
    double each = (cpu_us() - begin) / (double)count;
    *calls_each = (double)calls / (double)count;
    close(from), close(to), close(set);
    if (way->pipe_bytes) close(through[0]), close(through[1]);
    kill(feeder, SIGTERM), kill(reader, SIGTERM);
    waitpid(feeder, NULL, 0), waitpid(reader, NULL, 0);
    return each;
}

static int by_size(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int count, char **words) {
    int rounds = count == 3 ? atoi(words[1]) : 0;
    if (rounds < 1 || rounds > ROUNDS_MAX) return 2;
    double seconds = atof(words[2]);
    memory = malloc(bodies[BODIES - 1]);
    memset(memory, 'x', bodies[BODIES - 1]);
    signal(SIGPIPE, SIG_IGN);
    static double took[BODIES][WAYS][ROUNDS_MAX], made[BODIES][WAYS][ROUNDS_MAX];
    for (int round = 0; round < rounds; round++)
        for (int body = 0; body < BODIES; body++)
            for (int way = 0; way < WAYS; way++)
                took[body][way][round] = run(&ways[way], bodies[body], seconds, &made[body][way][round]);
    for (int body = 0; body < BODIES; body++)
        for (int way = 0; way < WAYS; way++) {
            qsort(took[body][way], (size_t)rounds, sizeof(double), by_size);
            qsort(made[body][way], (size_t)rounds, sizeof(double), by_size);
            printf("%4zu KiB  %-24s %8.1f us  %6.1f calls  %.2f\n", bodies[body] / 1024, ways[way].name,
                   took[body][way][rounds / 2], made[body][way][rounds / 2],
                   took[body][way][rounds / 2] / took[body][0][rounds / 2]);
        }
}
