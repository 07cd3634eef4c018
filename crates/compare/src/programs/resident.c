/* The same work kept behind hob's own protocol, by libhob: shared memory or a socket. After a `&` the
 * query says how many KiB are written at once; `file` for a query has it open a file and answer with
 * what is in it, at each request. */
#include <fcntl.h>
#include <hob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char block[1 << 20], page[65536];

static int answer_page(hob_request *request) {
    int file = open(PAGE, O_RDONLY);
    ssize_t count = file < 0 ? -1 : read(file, page, sizeof page);
    if (file >= 0) close(file);
    return count < 0 ? -1 : hob_write(request, page, (size_t)count);
}

int main(void) {
    hob *server;
    hob_request *request;
    memset(block, 'x', sizeof block);
    for (size_t i = 1023; i < sizeof block; i += 1024) block[i] = '\n';
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        const char *query = hob_indexed(request, HOB_QUERY_STRING, NULL);
        const char *more = query ? strchr(query, '&') : NULL;
        long left = (query ? atol(query) : 0) * 1024, piece = (more ? atol(more + 1) : 64) * 1024;
        if (piece <= 0 || piece > (long)sizeof block) piece = 65536;
        int code = hob_header(request, "Content-Type", "text/plain");
        if (query && !strcmp(query, "file")) code = answer_page(request);
        for (; left > 0 && code == HOB_OK; left -= piece)
            code = hob_write(request, block, (size_t)(left < piece ? left : piece));
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
