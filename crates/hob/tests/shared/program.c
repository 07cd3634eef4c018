/* The program of the tests: PATH_INFO says what to do, QUERY_STRING how much, or under which name.
 * With THREADS in the environment so many threads accept. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <hob.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static hob *server;

static void check(int is_good, const char *what) {
    if (is_good) return;
    fprintf(stderr, "program: %s\n", what);
    _exit(9);
}
#define CHECK(claim) check(claim, #claim)

static char pattern(long at) { return (char)(at % 251); }

static void text(hob_request *request, const char *text) {
    char length[32];
    snprintf(length, sizeof length, "%zu", strlen(text));
    hob_header(request, "Content-Type", "text/plain");
    hob_header(request, "Content-Length", length);
    hob_write(request, text, strlen(text));
}

static void number(hob_request *request, long value) {
    char into[32];
    snprintf(into, sizeof into, "%ld", value);
    text(request, into);
}

/* A file that says how far it is, in the folder it works in. */
static void mark(const char *name, const char *ending, long value) {
    char path[300], line[32];
    snprintf(path, sizeof path, "%s.%s", name, ending);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    int length = snprintf(line, sizeof line, "%ld\n", value);
    CHECK(fd >= 0 && pwrite(fd, line, (size_t)length, 0) == length);
    close(fd);
}

static void wait_for(const char *name, const char *ending) {
    char path[300];
    snprintf(path, sizeof path, "%s.%s", name, ending);
    while (access(path, F_OK) != 0) usleep(1000);
}

static int write_all(hob_request *request, long bytes, long step, int flushes) {
    static _Thread_local char block[150000];
    CHECK(step <= (long)sizeof block);
    for (long at = 0; at < bytes; at += step) {
        long now = bytes - at < step ? bytes - at : step;
        for (long place = 0; place < now; place++) block[place] = pattern(at + place);
        int code = hob_write(request, block, (size_t)now);
        if (code == HOB_OK && flushes) code = hob_flush(request);
        if (code != HOB_OK) return code;
    }
    return HOB_OK;
}

/* Lines of 1000 digits that all differ. */
static void lines(hob_request *request, long count) {
    char line[1002];
    hob_header(request, "Content-Type", "text/plain");
    for (long number = 0; number < count; number++) {
        snprintf(line, sizeof line, "%0999ld\n", number);
        if (hob_write(request, line, 1000) != HOB_OK || hob_flush(request) != HOB_OK) return;
    }
}

static void write_in_place(hob_request *request, long bytes) {
    for (long at = 0; at < bytes;) {
        void *place;
        size_t size;
        if (hob_space(request, &place, &size) != HOB_OK) return;
        if ((long)size > bytes - at) size = (size_t)(bytes - at);
        for (size_t n = 0; n < size; n++) ((char *)place)[n] = pattern(at + (long)n);
        CHECK(hob_advance(request, size) == HOB_OK);
        at += (long)size;
    }
}

static void echo(hob_request *request) {
    char piece[10000];
    int64_t count;
    hob_header(request, "Content-Type", "application/octet-stream");
    while ((count = hob_read(request, piece, sizeof piece)) > 0)
        if (hob_write(request, piece, (size_t)count) != HOB_OK) return;
    CHECK(count == 0 || count == HOB_CANCELLED);
}

/* Writes until nobody takes it any more, and marks how much that was. */
static void endless(hob_request *request, const char *name) {
    static char block[65536];
    long sent = 0;
    while (hob_write(request, block, sizeof block) == HOB_OK) {
        sent += (long)sizeof block;
        mark(name, "sent", sent);
    }
}

static void hold(hob_request *request, const char *name) {
    mark(name, "begun", (long)getpid());
    wait_for(name, "go");
    number(request, (long)getpid());
}

/* Every call fails in a child, which leaves the parent its request. It stays as long as it may. */
static void forked(hob_request *request) {
    int pipes[2];
    char good = 0;
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        good = hob_write(request, "x", 1) == HOB_FORKED && fcntl(3, F_GETFD) < 0;
        CHECK(write(pipes[1], &good, 1) == 1);
        for (;;) pause();
    }
    CHECK(read(pipes[0], &good, 1) == 1 && good);
    close(pipes[0]);
    close(pipes[1]);
    number(request, (long)child);
}

/* The memory that is shared with the server, as this process has it mapped. */
static unsigned char *region(size_t *bytes) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (!strstr(line, "hob-region") || sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
        fclose(maps);
        *bytes = to - from;
        return (unsigned char *)from;
    }
    check(0, "it has no region");
    return NULL;
}

static void set_word(unsigned char *place, uint32_t value) {
    __atomic_store_n((uint32_t *)place, value, __ATOMIC_SEQ_CST);
}

static uint32_t get_word(unsigned char *place) {
    return __atomic_load_n((uint32_t *)place, __ATOMIC_SEQ_CST);
}

/* Puts a message of 24 bytes where the server reads next, and shows it. */
static void put_message(unsigned char *start, const unsigned char message[24]) {
    uint32_t ring = get_word(start + 20), size = get_word(start + 24), tail = get_word(start + 192);
    for (uint32_t n = 0; n < 24; n++) start[ring + ((tail + n) & (size - 1))] = message[n];
    set_word(start + 192, tail + 24);
}

/* Writes what cannot be where the server looks, has it look, and leaves it at that. */
static void lie(const char *kind) {
    size_t bytes;
    uint64_t one = 1;
    unsigned char *start = region(&bytes);
    unsigned char message[24] = {8, 0, 0, 0, 35, 8, 0, 0, 1};
    if (!strcmp(kind, "position")) {
        set_word(start + 192, get_word(start + 192) + 12);
    } else if (!strcmp(kind, "far")) {
        set_word(start + 192, get_word(start + 192) + (1u << 30));
    } else if (!strcmp(kind, "kind")) {
        message[4] = 99;
        put_message(start, message);
    } else if (!strcmp(kind, "length")) {
        message[3] = 0x70;
        put_message(start, message);
    } else if (!strcmp(kind, "chunk")) {
        message[16] = 200;
        message[20] = 1;
        put_message(start, message);
    } else if (!strcmp(kind, "noise")) {
        uint32_t seed = (uint32_t)getpid();
        for (size_t n = 0; n + 4 <= bytes; n += 4) {
            seed = seed * 1664525u + 1013904223u;
            set_word(start + n, seed);
        }
    } else {
        check(0, "there is no such lie");
    }
    for (int fd = 4; fd < 16; fd++)
        if (write(fd, &one, sizeof one) < 0) continue;
    for (;;) pause();
}

static void *burn(void *unused) {
    struct timespec used;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < 50000000);
    return unused;
}

static void burn_beside(hob_request *request) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, burn, NULL) == 0);
    pthread_join(thread, NULL);
    text(request, "burnt");
}

static void grow(hob_request *request, long bytes) {
    static char *volatile grown;
    grown = malloc((size_t)bytes);
    CHECK(grown != NULL);
    memset(grown, 1, (size_t)bytes);
    number(request, (long)getpid());
}

static void ask_server(hob_request *request, const char *what) {
    char into[500] = "refused", asked[500];
    size_t length = 0;
    /* A query has no blanks. */
    snprintf(asked, sizeof asked, "%s", what);
    for (char *at = asked; *at; at++)
        if (*at == '+') *at = ' ';
    int code = hob_callout(request, asked, into, sizeof into, &length);
    CHECK(code == HOB_OK || code == HOB_REFUSED);
    text(request, into);
}

/* As many interim answers. */
static void early(hob_request *request, long count) {
    const char *line = "Link: </a-stylesheet-with-quite-a-long-name-that-fills-a-line.css>\n";
    while (count-- > 0) CHECK(hob_interim(request, 103, line, strlen(line)) == HOB_OK);
    text(request, "late");
}

/* A hundred lines of last words. */
static void shout(void) {
    for (int number = 0; number < 100; number++) fprintf(stderr, "%0200d\n", number);
    raise(SIGKILL);
}

static void answer(hob_request *request) {
    const char *path = hob_indexed(request, HOB_PATH_INFO, NULL);
    const char *query = hob_indexed(request, HOB_QUERY_STRING, NULL);
    if (!query) query = "";
    long count = atol(query);
    if (!strcmp(path, "/pid")) {
        number(request, (long)getpid());
    } else if (!strcmp(path, "/blocks")) {
        write_all(request, count, 150000, 0);
    } else if (!strcmp(path, "/pieces")) {
        write_all(request, count, 1000, 1);
    } else if (!strcmp(path, "/lines")) {
        lines(request, count);
    } else if (!strcmp(path, "/direct")) {
        write_in_place(request, count);
    } else if (!strcmp(path, "/sized")) {
        hob_header(request, "Content-Length", query);
        write_all(request, count, 65536, 0);
    } else if (!strcmp(path, "/status")) {
        hob_status(request, (int)count);
        hob_header(request, "ETag", "\"a\"");
    } else if (!strcmp(path, "/echo")) {
        echo(request);
    } else if (!strcmp(path, "/late")) {
        hob_write(request, "begun\n", 6);
        hob_flush(request);
        echo(request);
    } else if (!strcmp(path, "/endless")) {
        endless(request, query);
    } else if (!strcmp(path, "/around")) {
        CHECK(hob_interim(request, 103, "Link: </a.css>\n", 15) == HOB_OK);
        CHECK(hob_head(request, 201, "Content-Type: text/plain\n", 25) == HOB_OK);
        hob_write(request, "made", 4);
        CHECK(hob_trailer(request, "Checksum", "1") == HOB_OK);
    } else if (!strcmp(path, "/hold")) {
        hold(request, query);
    } else if (!strcmp(path, "/begun")) {
        hob_header(request, "Content-Type", "text/plain");
        hob_write(request, "begun\n", 6);
        hob_flush(request);
        for (;;) pause();
    } else if (!strcmp(path, "/silent")) {
        for (;;) pause();
    } else if (!strcmp(path, "/die")) {
        raise(SIGKILL);
    } else if (!strcmp(path, "/shout")) {
        shout();
    } else if (!strcmp(path, "/fork")) {
        forked(request);
    } else if (!strcmp(path, "/carrier")) {
        text(request, hob_carrier(server));
    } else if (!strcmp(path, "/close")) {
        close(3);
        for (;;) pause();
    } else if (!strcmp(path, "/lie")) {
        lie(query);
    } else if (!strcmp(path, "/burn")) {
        burn_beside(request);
    } else if (!strcmp(path, "/grow")) {
        grow(request, count);
    } else if (!strcmp(path, "/ask")) {
        ask_server(request, query);
    } else if (!strcmp(path, "/ask-and-hang")) {
        ask_server(request, query);
        for (;;) pause();
    } else if (!strcmp(path, "/early")) {
        early(request, count);
    } else if (!strcmp(path, "/nap")) {
        usleep((useconds_t)count);
        number(request, (long)getpid());
    } else {
        hob_status(request, 404);
    }
    hob_finish(request);
}

static void *serve(void *unused) {
    hob_request *request;
    int code;
    while ((code = hob_accept(server, &request)) == HOB_OK) answer(request);
    CHECK(code == HOB_NO_MORE || code == HOB_GONE);
    return unused;
}

int main(void) {
    const char *threads = getenv("THREADS");
    pthread_t started[256];
    int count = threads ? atoi(threads) : 0;
    CHECK(count <= 256 && hob_connect(&server) == HOB_OK);
    for (int n = 0; n < count; n++) CHECK(pthread_create(&started[n], NULL, serve, NULL) == 0);
    for (int n = 0; n < count; n++) pthread_join(started[n], NULL);
    if (!count) serve(NULL);
    hob_close(server);
    /* The test sees that what follows the loop runs. */
    int ended = creat("loop-has-ended", 0644);
    if (ended >= 0) close(ended);
    return 0;
}
