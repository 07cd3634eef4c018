/* The resident program of the side-by-side tool: QUERY_STRING says how many KiB of body. */
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
        long kib = query ? atol(query) : 0;
        int code = hob_header(request, "Content-Type", "text/plain");
        for (; kib >= 64 && code == HOB_OK; kib -= 64) code = hob_write(request, block, sizeof block);
        for (; kib > 0 && code == HOB_OK; kib--) code = hob_write(request, block, 1024);
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
