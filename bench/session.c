/* A program that stays: the same for `resident` and for `session`, where each answer keeps the visit. */
#include <hob.h>

int main(void) {
    hob *server;
    hob_request *request;
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        const char *handle = hob_variable(request, "HTSession", NULL);
        if (handle) hob_header(request, "Accept-HTSession", handle);
        hob_header(request, "Content-Type", "text/plain");
        hob_write(request, handle ? handle : "hello", handle ? 33 : 5);
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
