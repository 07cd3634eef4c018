/* The floor of bulk output: a program in another process fills chunks of shared memory, a bare epoll
 * loop writes them to the socket, and nothing else is done: no head is parsed but for the query, no
 * field is checked, nothing is logged or counted.
 *
 *   usage: ring PORT [CHUNK_KIB [CHUNKS [KEPT]]]      GET /?KIB answers with KIB KiB
 *
 * With KEPT the chunks leave by sendfile, as the pages that they are in. A receiver on the same host
 * still reads a page after its bytes were acknowledged, so a chunk is given back to the program only
 * when KEPT chunks were sent after it: more than both socket buffers hold.
 *
 * One request at a time, keep-alive. The two sides wake each other only when one sleeps. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct shared {
    _Atomic uint32_t asked __attribute__((aligned(64)));  /* counts requests; the worker sleeps on it */
    _Atomic uint64_t wanted;                              /* bytes of the request */
    _Atomic uint32_t filled __attribute__((aligned(64))); /* chunks since the beginning */
    _Atomic uint32_t sent __attribute__((aligned(64)));   /* chunks since the beginning; the worker sleeps on it */
    _Atomic uint32_t worker_sleeps __attribute__((aligned(64))), server_sleeps;
};

static size_t chunk_bytes = 64 * 1024, chunks = 32, kept = 0;

static void futex(_Atomic uint32_t *word, int call, uint32_t value) { syscall(SYS_futex, word, call, value, 0, 0, 0); }

/* Sleeps until the word is no longer what it was. */
static void sleep_on(struct shared *s, _Atomic uint32_t *word, uint32_t was) {
    s->worker_sleeps = 1;
    if (*word == was) futex(word, FUTEX_WAIT, was);
    s->worker_sleeps = 0;
}

static void work(struct shared *s, char *ring, int bell) {
    char *block = malloc(chunk_bytes);
    memset(block, 'x', chunk_bytes);
    for (uint32_t served = 0;; served++) {
        while (s->asked == served) sleep_on(s, &s->asked, served);
        for (uint64_t left = s->wanted; left > 0;) {
            uint32_t sent = s->sent;
            if (s->filled - sent == chunks) { sleep_on(s, &s->sent, sent); continue; }
            size_t now = left < chunk_bytes ? left : chunk_bytes;
            memcpy(ring + (s->filled % chunks) * chunk_bytes, block, now);
            left -= now;
            s->filled++;
            if (atomic_exchange(&s->server_sleeps, 0) && write(bell, &(uint64_t){1}, 8) < 0) _exit(0);
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    if (argc > 2) chunk_bytes = atol(argv[2]) * 1024;
    if (argc > 3) chunks = atol(argv[3]);
    if (argc > 4) kept = atol(argv[4]);
    struct shared *s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int memory = memfd_create("ring", 0);
    if (memory < 0 || ftruncate(memory, chunk_bytes * chunks)) { perror("ring"); return 1; }
    char *ring = mmap(0, chunk_bytes * chunks, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    uint32_t left_for = 0; /* chunks that have left, those included that are kept */
    int bell = eventfd(0, EFD_NONBLOCK);
    if (!fork()) { prctl(PR_SET_PDEATHSIG, SIGKILL); work(s, ring, bell); }

    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), set = epoll_create1(0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 16)) { perror("ring"); return 1; }
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = bell}, events[8];
    epoll_ctl(set, EPOLL_CTL_ADD, bell, &event);
    for (;;) {
        int conn = accept4(listener, 0, 0, SOCK_NONBLOCK);
        setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET; event.data.fd = conn;
        epoll_ctl(set, EPOLL_CTL_ADD, conn, &event);
        uint64_t left = 0; size_t done = 0; int gone = 0; char in[8192], head[256];
        while (!gone || left) {
            if (!left) {
                ssize_t n = gone ? 0 : read(conn, in, sizeof in - 1);
                if (n == 0) break;
                if (n > 0) {
                    in[n] = 0;
                    char *query = strchr(in, '?');
                    left = query ? strtoull(query + 1, 0, 10) * 1024 : 0;
                    int len = sprintf(head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %llu\r\n\r\n", (unsigned long long)left);
                    if (write(conn, head, len) != len) break;
                    s->wanted = left; s->asked++;
                    if (s->worker_sleeps) futex(&s->asked, FUTEX_WAKE, 1);
                    continue;
                }
            }
            int is_full = 0;
            while (left && left_for != s->filled) {
                size_t len = left + done < chunk_bytes ? left + done : chunk_bytes;
                /* A client that left: what the worker still makes is thrown away. */
                off_t at = (left_for % chunks) * chunk_bytes + done;
                ssize_t n = gone ? (ssize_t)(len - done) : kept ? sendfile(conn, memory, &at, len - done) : send(conn, ring + at, len - done, MSG_NOSIGNAL);
                if (n < 0) { is_full = 1; break; }
                done += n; left -= n;
                if (done < len) continue;
                done = 0;
                if (++left_for - s->sent <= kept) continue;
                s->sent++;
                if (s->worker_sleeps) futex(&s->sent, FUTEX_WAKE, 1);
            }
            s->server_sleeps = 1;
            /* Room in the socket is an event; a chunk that came before the flag was set is not. */
            int count = epoll_wait(set, events, 8, left_for != s->filled && !is_full ? 0 : -1);
            s->server_sleeps = 0;
            for (int i = 0; i < count; i++) gone |= events[i].data.fd == conn && (events[i].events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP));
        }
        close(conn);
    }
}
