/* framing.c: answers whose framing is the program's own, right and wrong. */
#include <hob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(hob_request *request, const char *text) {
    hob_write(request, text, strlen(text));
}

static void chunked_large(hob_request *request) {
    static char framed[1100000];
    size_t length = 0, sent = 0, step;
    for (int n = 0; n < 1000; n++) {
        length += (size_t)sprintf(framed + length, "3E8;some=thing\r\n");
        memset(framed + length, 'x', 1000);
        length += 1000;
        length += (size_t)sprintf(framed + length, "\r\n");
    }
    length += (size_t)sprintf(framed + length, "0\r\nX-Checksum: 1\r\n\r\n");
    hob_write(request, framed, 5);
    hob_flush(request);
    for (sent = 5, step = 1; sent < length; sent += step, step = step * 3 % 70001 + 1) {
        if (step > length - sent) step = length - sent;
        if (hob_write(request, framed + sent, step) < 0) return;
    }
}

static void answer(hob *server, hob_request *request, const char *path) {
    char text[64];
    if (!strcmp(path, "/carrier")) {
        say(request, hob_carrier(server));
    } else if (!strcmp(path, "/pid")) {
        sprintf(text, "%ld", (long)getpid());
        say(request, text);
    } else if (!strncmp(path, "/bodies/", 8)) {
        static char body[400000];
        hob_status(request, atoi(path + 8));
        hob_header(request, "Content-Length", "400000");
        hob_write(request, body, sizeof body);
    } else {
        hob_header(request, "Transfer-Encoding", "chunked");
        if (!strcmp(path, "/chunked")) say(request, "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
        if (!strcmp(path, "/chunked_large")) chunked_large(request);
        if (!strcmp(path, "/no_chunks")) say(request, "hello\n");
        if (!strncmp(path, "/chunks_end_", 12)) {
            say(request, "3\r\nabc\r\n");
            hob_flush(request);
            /* Its beginning is to have arrived before it is known to be wrong. */
            sprintf(text, "%s.go", path + 12);
            while (!hob_is_cancelled(request) && access(text, F_OK) != 0) usleep(1000);
            say(request, !strcmp(path + 12, "later") ? "2\r\ndef\r\n" : "5\r\nde");
        }
    }
}

int main(void) {
    hob *server;
    hob_request *request;
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        size_t length;
        answer(server, request, hob_indexed(request, HOB_PATH_INFO, &length));
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
