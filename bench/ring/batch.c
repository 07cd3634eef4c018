/* What handing requests to another process costs at least: two rings in shared memory, a futex for
   whoever sleeps, and nothing else. The parent hands over a batch of requests, each a block of so
   many bytes, and sleeps until as many answers have come; the child reads every block, and answers.

       cc -O2 -o batch bench/ring/batch.c && taskset -c 0 ./batch [BATCH [BLOCK_BYTES [SECONDS]]]

   prints the CPU time of both per request. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES (1 << 20)
#define ANSWER_BYTES 64

struct ring {
    _Atomic unsigned tail, sleeps;
    char bytes[RING_BYTES];
};

static struct ring *to_child, *to_parent;

static void futex(_Atomic unsigned *word, int what, unsigned value) {
    syscall(SYS_futex, word, what, value, NULL, NULL, 0);
}

/* Makes what was written visible, and wakes the other side if it sleeps. */
static void hand(struct ring *ring, unsigned tail) {
    atomic_store(&ring->tail, tail);
    if (atomic_exchange(&ring->sleeps, 0)) futex(&ring->sleeps, FUTEX_WAKE, 1);
}

/* Sleeps until there is more than was read; returns where that ends. */
static unsigned await(struct ring *ring, unsigned head) {
    unsigned tail;
    while ((tail = atomic_load(&ring->tail)) == head) {
        atomic_store(&ring->sleeps, 1);
        if (atomic_load(&ring->tail) == head) futex(&ring->sleeps, FUTEX_WAIT, 1);
        atomic_store(&ring->sleeps, 0);
    }
    return tail;
}

static void put(struct ring *ring, unsigned *tail, const char *from, unsigned length) {
    unsigned at = *tail % RING_BYTES;
    if (at + length > RING_BYTES) *tail += RING_BYTES - at, at = 0;
    memcpy(ring->bytes + at, from, length);
    *tail += length;
}

static const char *take(struct ring *ring, unsigned *head, unsigned length) {
    unsigned at = *head % RING_BYTES;
    if (at + length > RING_BYTES) *head += RING_BYTES - at, at = 0;
    *head += length;
    return ring->bytes + at;
}

static unsigned sum(const char *bytes, unsigned length) {
    unsigned sum = 0;
    for (unsigned at = 0; at < length; at++) sum += (unsigned char)bytes[at];
    return sum;
}

static void answer(unsigned block_bytes) {
    char text[ANSWER_BYTES] = "Content-Type: text/plain\n\n";
    unsigned head = 0, tail = 0;
    for (;;) {
        unsigned end = await(to_child, head);
        while (head != end) {
            unsigned read = sum(take(to_child, &head, block_bytes), block_bytes);
            memcpy(text + 32, &read, sizeof read);
            put(to_parent, &tail, text, ANSWER_BYTES);
        }
        hand(to_parent, tail);
    }
}

static double cpu_us(int who) {
    struct rusage used;
    getrusage(who, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

int main(int argc, char **argv) {
    unsigned batch = argc > 1 ? atoi(argv[1]) : 10, block_bytes = argc > 2 ? atoi(argv[2]) : 900;
    int seconds = argc > 3 ? atoi(argv[3]) : 2;
    if (batch < 1 || batch > 100 || block_bytes < 1 || block_bytes > 4096) return 2;
    to_child = mmap(NULL, 2 * sizeof *to_child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (to_child == MAP_FAILED) return perror("mmap"), 1;
    to_parent = to_child + 1;
    pid_t child = fork();
    if (child < 0) return perror("fork"), 1;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, 9);
        answer(block_bytes);
    }
    static char block[4096];
    memset(block, 'x', sizeof block);
    unsigned wanted = sum(block, block_bytes), tail = 0, head = 0;
    unsigned long count = 0;
    time_t end = time(NULL) + seconds;
    while (time(NULL) < end) {
        for (unsigned number = 0; number < batch; number++) put(to_child, &tail, block, block_bytes);
        hand(to_child, tail);
        for (unsigned number = 0; number < batch; number++) {
            await(to_parent, head);
            unsigned read;
            memcpy(&read, take(to_parent, &head, ANSWER_BYTES) + 32, sizeof read);
            if (read != wanted) return fprintf(stderr, "a block came as another\n"), 1;
        }
        count += batch;
    }
    kill(child, 9);
    waitpid(child, NULL, 0);
    printf("%lu requests, %.2f us each\n", count, (cpu_us(RUSAGE_SELF) + cpu_us(RUSAGE_CHILDREN)) / count);
    return 0;
}
