/* Opens a tunnel for every request but two; what it carries depends on the path. Several threads
 * accept, so that one process holds several tunnels. */
#define _DEFAULT_SOURCE
#include <hob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8

static hob *server;

static int is_path(hob_request *request, const char *path) {
    return !strcmp(hob_variable(request, "PATH_INFO", NULL), path);
}

static void say(hob_request *request, const char *text) {
    hob_write(request, text, strlen(text));
    hob_flush(request);
}

/* What comes goes back; when the client has ended its side there is a last word. */
static void echo(hob_request *request) {
    char piece[40000];
    int64_t count;
    while ((count = hob_read(request, piece, sizeof piece)) > 0) {
        if (hob_write(request, piece, count) != HOB_OK || hob_flush(request) != HOB_OK) return;
    }
    if (count == 0) say(request, "bye");
    if (count == HOB_CANCELLED) hob_log(request, "warning", "echo: the client has left");
}

/* Tells how much could be written to a client that took only some of it. */
static void flood(hob_request *request) {
    static char piece[50000];
    char text[80];
    long long written = 0;
    while (hob_write(request, piece, sizeof piece) == HOB_OK) written += sizeof piece;
    snprintf(text, sizeof text, "flood: %lld bytes", written);
    hob_log(request, "warning", text);
}

/* Says much, ends its direction, and tells how much the client still sends. With a query it does
 * not wait for that. */
static void end_first(hob_request *request) {
    static const char piece[50000];
    char heard[50000], text[80];
    long long taken = 0;
    int64_t count = 0;
    for (int at = 0; at < 40; at++) hob_write(request, piece, sizeof piece);
    if (hob_half_close(request) != HOB_OK || hob_write(request, "more", 4) != HOB_MISUSE) return;
    if (!hob_variable(request, "QUERY_STRING", NULL)[0])
        while ((count = hob_read(request, heard, sizeof heard)) > 0) taken += count;
    snprintf(text, sizeof text, "half: %lld bytes, then %d", taken, (int)count);
    hob_log(request, "warning", text);
}

/* Reads nothing until the client has left. */
static void ignore(hob_request *request) {
    say(request, "open");
    while (!hob_is_cancelled(request)) usleep(10000);
    hob_log(request, "warning", "deaf: the client has left");
}

/* Ends by itself once no more requests come. */
static void wait_for_drain(hob_request *request) {
    char piece[100];
    say(request, "open");
    while (hob_read_within(request, piece, sizeof piece, 20) == HOB_AGAIN) {
        if (hob_is_draining(server) == 1) {
            say(request, "going");
            return;
        }
    }
}

static void answer(hob_request *request) {
    const char *asked = hob_variable(request, "HOB_TUNNEL", NULL);
    const char *upgrade = hob_variable(request, "HTTP_UPGRADE", NULL);
    char text[200];
    if (is_path(request, "/plain")) {
        say(request, "plain");
        return;
    }
    if (is_path(request, "/no")) {
        hob_status(request, 404);
        return;
    }
    if (hob_tunnel(request, is_path(request, "/wrong") ? 404 : 200, "X-Kind: test\n", 13) != HOB_OK) {
        hob_fail(request, "no tunnel");
        return;
    }
    if (is_path(request, "/flood")) flood(request);
    else if (is_path(request, "/deaf")) ignore(request);
    else if (is_path(request, "/half")) end_first(request);
    else if (is_path(request, "/drain")) wait_for_drain(request);
    else if (is_path(request, "/about")) {
        snprintf(text, sizeof text, "%s %s %s %s %d\n", asked ? asked : "-", upgrade ? upgrade : "-",
                 hob_variable(request, "REQUEST_METHOD", NULL),
                 hob_variable(request, "SERVER_PROTOCOL", NULL), getpid());
        say(request, text);
        echo(request);
    } else echo(request);
}

static void *serve(void *unused) {
    hob_request *request;
    while (hob_accept(server, &request) == HOB_OK) {
        if (is_path(request, "/wrong")) {
            if (hob_tunnel(request, 404, "", 0) == HOB_MISUSE) hob_fail(request, "as it should");
            else hob_finish(request);
            continue;
        }
        answer(request);
        hob_finish(request);
    }
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    if (hob_connect(&server) < 0) return 1;
    for (int at = 0; at < THREADS; at++) pthread_create(&threads[at], NULL, serve, NULL);
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    hob_close(server);
    return 0;
}
