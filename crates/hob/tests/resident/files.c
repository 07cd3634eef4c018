/* files.c: answers out of files. The query names the file. */
#include <fcntl.h>
#include <hob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(hob_request *request, const char *text) {
    hob_write(request, text, strlen(text));
}

static void answer(hob *server, hob_request *request, const char *path) {
    char text[64];
    int fd = open(hob_indexed(request, HOB_QUERY_STRING, NULL), O_RDONLY | O_CLOEXEC);
    hob_header(request, "Content-Type", "application/octet-stream");
    if (!strcmp(path, "/carrier")) {
        say(request, hob_carrier(server));
    } else if (!strcmp(path, "/pid")) {
        sprintf(text, "%ld", (long)getpid());
        say(request, text);
    } else if (fd < 0) {
        hob_status(request, 404);
    } else if (!strcmp(path, "/whole")) {
        hob_send_file(request, fd, 0, -1);
    } else if (!strcmp(path, "/parts")) {
        say(request, "before ");
        long long sent = hob_send_file(request, fd, 100, 200000);
        sprintf(text, " %lld and ", sent);
        say(request, text);
        sent = hob_send_file(request, fd, 299900, 1000000);
        sprintf(text, " %lld and ", sent);
        say(request, text);
        hob_send_file(request, fd, 7, 10);
    } else if (!strcmp(path, "/many")) {
        for (int n = 0; n < 100; n++)
            if (hob_send_file(request, fd, n, 65536) != 65536) break;
    }
    if (fd >= 0) close(fd);
}

int main(void) {
    hob *server;
    hob_request *request;
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        answer(server, request, hob_indexed(request, HOB_PATH_INFO, NULL));
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
