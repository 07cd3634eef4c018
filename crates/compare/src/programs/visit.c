/* A program for one visitor, by libhob. The query string says how many KiB of body; without one the
 * body is the visit's handle. */
#include <hob.h>
#include <stdlib.h>
#include <string.h>

static char block[65536];

int main(void) {
    hob *server;
    hob_request *request;
    memset(block, 'x', sizeof block);
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        const char *query = hob_indexed(request, HOB_QUERY_STRING, NULL);
        const char *handle = hob_variable(request, "HTSession", NULL);
        size_t bytes = query ? (size_t)atol(query) * 1024 : 0;
        if (bytes > sizeof block) bytes = sizeof block;
        hob_header(request, "Accept-HTSession", handle);
        hob_header(request, "Content-Type", "text/plain");
        if (bytes > 0) hob_write(request, block, bytes);
        else hob_write(request, handle, strlen(handle));
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
