/* A program whose requests take as many milliseconds as NAP_MS says, waiting and not computing. */
#define _GNU_SOURCE
#include <hob.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    hob *server;
    hob_request *request;
    const char *ms = getenv("NAP_MS");
    useconds_t us = ms ? (useconds_t)atoi(ms) * 1000 : 0;
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        usleep(us);
        hob_header(request, "Content-Type", "text/plain");
        hob_header(request, "Content-Length", "6");
        hob_write(request, "rested", 6);
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
