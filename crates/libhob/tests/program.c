/* The program of the tests: PATH_INFO says what to do. With THREADS in the environment so many
 * threads accept. Every failure that is not expected ends it with a message. */
#define _GNU_SOURCE
#include <hob.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static hob *server;

static void check(int is_good, const char *what) {
    if (is_good) return;
    fprintf(stderr, "program: %s\n", what);
    _exit(9);
}
#define CHECK(claim) check(claim, #claim)

static void echo(hob_request *request) {
    char piece[10000];
    int64_t count;
    hob_header(request, "Content-Type", "application/octet-stream");
    while ((count = hob_read(request, piece, sizeof piece)) > 0)
        if (hob_write(request, piece, (size_t)count) != HOB_OK) break;
    CHECK(count >= 0);
}

static void bulk(hob_request *request, long bytes, size_t step) {
    static char block[200000];
    CHECK(step <= sizeof block);
    for (long at = 0; at < bytes; at += (long)step) {
        size_t now = (size_t)(bytes - at) < step ? (size_t)(bytes - at) : step;
        for (size_t place = 0; place < now; place++) block[place] = (char)((at + (long)place) % 251);
        int code = hob_write(request, block, now);
        if (code == HOB_CANCELLED) return;
        CHECK(code == HOB_OK);
    }
}

static void direct(hob_request *request, long bytes) {
    for (long at = 0; at < bytes;) {
        void *place;
        size_t size;
        CHECK(hob_space(request, &place, &size) == HOB_OK && size > 0);
        if ((long)size > bytes - at) size = (size_t)(bytes - at);
        for (size_t n = 0; n < size; n++) ((char *)place)[n] = (char)((at + (long)n) % 251);
        CHECK(hob_advance(request, size) == HOB_OK);
        at += (long)size;
    }
    CHECK(hob_advance(request, 1u << 20) == HOB_MISUSE);
}

static void variables(hob_request *request) {
    size_t cursor = 0, length = 7;
    const char *name, *value;
    while (hob_next_variable(request, &cursor, &name, &value) == 1) {
        hob_write(request, name, strlen(name));
        hob_write(request, "=", 1);
        hob_write(request, value, strlen(value));
        hob_write(request, "\n", 1);
    }
    CHECK(hob_variable(request, "NOT_THERE", &length) == NULL && length == 0);
    CHECK(hob_variable(request, NULL, &length) == NULL);
    CHECK(hob_indexed(request, 16, NULL) == NULL && hob_indexed(request, -1, NULL) == NULL);
    CHECK(!strcmp(hob_variable(request, "PATH_INFO", &length), "/variables") && length == 10);
}

static void misuse(hob_request *request) {
    hob *another;
    CHECK(hob_connect(&another) == HOB_MISUSE && hob_connect(NULL) == HOB_MISUSE);
    CHECK(hob_status(request, 99) == HOB_MISUSE && hob_status(NULL, 200) == HOB_MISUSE);
    CHECK(hob_header(request, "A: b", "c") == HOB_MISUSE);
    CHECK(hob_header(request, "A", "b\r\nC: d") == HOB_MISUSE);
    CHECK(hob_interim(request, 101, "", 0) == HOB_MISUSE);
    CHECK(hob_finish(NULL) == HOB_MISUSE && hob_accept(NULL, NULL) == HOB_MISUSE);
    CHECK(hob_write(request, NULL, 5) == HOB_MISUSE && hob_write(request, NULL, 0) == HOB_OK);
    CHECK(strlen(hob_explain(-999)) > 0);
    hob_status(request, 204);
}

static void forked(hob_request *request) {
    int pipes[2], status;
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0) {
        int good = hob_write(request, "x", 1) == HOB_FORKED && hob_is_draining(server) == HOB_FORKED
            && fcntl(3, F_GETFD) < 0;
        _exit(good ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(getenv("HOB_FD") == NULL);
    hob_write(request, "forked\n", 7);
}

static void file(hob_request *request, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(hob_send_file(request, fd, 100, -1) > 0 && hob_send_file(request, fd, 0, 100) == 100);
    CHECK(hob_send_file(request, -1, 0, 1) == HOB_SYSTEM && errno == EBADF);
    close(fd);
}

static void callouts(hob_request *request) {
    char into[8];
    size_t length = 0;
    CHECK(hob_log(request, "info", "a line") == HOB_OK && hob_trace(request, "a trace") == HOB_OK);
    CHECK(hob_set_timeout(request, 5) == HOB_OK && hob_set_lifetime(server, -5) == HOB_OK);
    CHECK(hob_map_path(request, "/a/b", into, sizeof into, &length) == HOB_OK);
    CHECK(length == 8 && !strcmp(into, "/srv/a/"));
    CHECK(hob_callout(request, "WHAT: ", into, sizeof into, NULL) == HOB_REFUSED);
    hob_write(request, "called out\n", 11);
}

/* Two requests on one thread: the answer of the first says what something has come for. */
static void together(hob_request *first) {
    struct pollfd ready = {hob_fd(server), POLLIN, 0};
    hob_request *second;
    uint32_t number;
    char piece[100];
    int64_t count = 1;
    CHECK(hob_changed(server, NULL, 1) == HOB_MISUSE && hob_number(NULL) == 0);
    CHECK(hob_flush(first) == HOB_OK && hob_accept(server, &second) == HOB_OK);
    CHECK(hob_number(first) > 0 && hob_number(second) > 0 && hob_number(first) != hob_number(second));
    CHECK(hob_flush(second) == HOB_OK);
    while (hob_changed(server, &number, 1) == 1) continue;
    while (count != 0) {
        int found;
        if (hob_look(server) == HOB_AGAIN) poll(&ready, 1, -1);
        while ((found = hob_changed(server, &number, 1)) == 1) {
            char who = number == 0 ? '0' : number == hob_number(first) ? 'a' : 'b';
            if (who == 'a') count = hob_read_within(first, piece, sizeof piece, 0);
            if (who == 'b') hob_read_within(second, piece, sizeof piece, 0);
            CHECK(hob_write(first, &who, 1) == HOB_OK && hob_flush(first) == HOB_OK);
        }
        CHECK(found == 0);
    }
    CHECK(hob_finish(second) == HOB_CANCELLED);
}

static void answer(hob_request *request) {
    const char *path = hob_indexed(request, HOB_PATH_INFO, NULL);
    const char *query = hob_indexed(request, HOB_QUERY_STRING, NULL);
    long number = query ? atol(query) : 0;
    int code = HOB_OK;
    if (!strcmp(path, "/hello")) {
        hob_header(request, "Content-Type", "text/plain");
        hob_write(request, "hello\n", 6);
    } else if (!strcmp(path, "/empty")) {
        hob_status(request, 304);
    } else if (!strcmp(path, "/echo")) {
        echo(request);
    } else if (!strcmp(path, "/bulk")) {
        bulk(request, number, 1000);
    } else if (!strcmp(path, "/blocks")) {
        bulk(request, number, 150000);
    } else if (!strcmp(path, "/direct")) {
        direct(request, number);
    } else if (!strcmp(path, "/flush")) {
        for (; number > 0; number--) CHECK(hob_write(request, "x", 1) == HOB_OK && hob_flush(request) == HOB_OK);
    } else if (!strcmp(path, "/variables")) {
        variables(request);
    } else if (!strcmp(path, "/misuse")) {
        misuse(request);
    } else if (!strcmp(path, "/fork")) {
        forked(request);
    } else if (!strcmp(path, "/file")) {
        file(request, query);
    } else if (!strcmp(path, "/callouts")) {
        callouts(request);
    } else if (!strcmp(path, "/interim")) {
        CHECK(hob_interim(request, 103, "Link: </a.css>\n", 15) == HOB_OK);
        CHECK(hob_head(request, 201, "A: b\nC: d\n", 10) == HOB_OK);
        hob_write(request, "made", 4);
        CHECK(hob_trailer(request, "Checksum", "1") == HOB_OK);
    } else if (!strcmp(path, "/tunnel")) {
        char piece[100];
        int64_t count;
        CHECK(hob_tunnel(request, 101, "Upgrade: echo\n", 14) == HOB_OK);
        while ((count = hob_read(request, piece, sizeof piece)) > 0)
            CHECK(hob_write(request, piece, (size_t)count) == HOB_OK && hob_flush(request) == HOB_OK);
    } else if (!strcmp(path, "/half")) {
        char piece[100];
        int64_t count;
        CHECK(hob_half_close(request) == HOB_MISUSE);
        CHECK(hob_tunnel(request, 101, "Upgrade: echo\n", 14) == HOB_OK);
        CHECK(hob_write(request, "last", 4) == HOB_OK && hob_half_close(request) == HOB_OK);
        CHECK(hob_write(request, "more", 4) == HOB_MISUSE && hob_half_close(request) == HOB_MISUSE);
        while ((count = hob_read(request, piece, sizeof piece)) > 0) continue;
        CHECK(count == 0);
    } else if (!strcmp(path, "/until-cancelled")) {
        struct pollfd ready = {hob_fd(server), POLLIN, 0};
        char byte;
        CHECK(ready.fd >= 0 && hob_flush(request) == HOB_OK);
        while (hob_read_within(request, &byte, 1, 0) == HOB_AGAIN) poll(&ready, 1, -1);
        CHECK(hob_read_within(request, &byte, 1, 1000) == HOB_CANCELLED);
        CHECK(hob_is_cancelled(request) == 1);
    } else if (!strcmp(path, "/together")) {
        together(request);
    } else if (!strcmp(path, "/fail")) {
        CHECK(hob_fail(request, "no database") == HOB_OK);
        return;
    } else {
        hob_status(request, 404);
    }
    code = hob_finish(request);
    CHECK(code == HOB_OK || code == HOB_CANCELLED);
}

static void *serve(void *unused) {
    hob_request *request;
    int code;
    while ((code = hob_accept(server, &request)) == HOB_OK) answer(request);
    CHECK(code == HOB_NO_MORE || code == HOB_GONE);
    return unused;
}

/* One thread, many requests at a time, with a poll of its own. */
static void serve_by_poll(void) {
    hob_request *request;
    struct pollfd ready = {hob_fd(server), POLLIN, 0};
    int code;
    CHECK(ready.fd >= 0);
    for (;;) {
        while ((code = hob_accept_within(server, &request, 0)) == HOB_OK) answer(request);
        if (code != HOB_AGAIN) break;
        poll(&ready, 1, -1);
    }
    CHECK(code == HOB_NO_MORE || code == HOB_GONE);
}

int main(void) {
    const char *threads = getenv("THREADS");
    pthread_t started[64];
    int count = threads ? atoi(threads) : 0, code = hob_connect(&server);
    CHECK(code == HOB_OK || code == HOB_PLAIN_CGI);
    if (getenv("POLL")) serve_by_poll();
    for (int n = 0; n < count; n++) CHECK(pthread_create(&started[n], NULL, serve, NULL) == 0);
    for (int n = 0; n < count; n++) pthread_join(started[n], NULL);
    if (!count && !getenv("POLL")) serve(NULL);
    hob_close(server);
    return 0;
}
