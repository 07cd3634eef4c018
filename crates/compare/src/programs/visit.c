/* A program for one visitor, by libhob. With a query string it opens a file and answers with what is in
 * it, at each request; without one the body is the visit's handle. */
#include <fcntl.h>
#include <hob.h>
#include <string.h>
#include <unistd.h>

static char page[65536];

int main(void) {
    hob *server;
    hob_request *request;
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        const char *query = hob_indexed(request, HOB_QUERY_STRING, NULL);
        const char *handle = hob_variable(request, "HTSession", NULL);
        hob_header(request, "Accept-HTSession", handle);
        hob_header(request, "Content-Type", "text/plain");
        if (query && *query) {
            int file = open(PAGE, O_RDONLY);
            ssize_t count = file < 0 ? -1 : read(file, page, sizeof page);
            if (file >= 0) close(file);
            if (count > 0) hob_write(request, page, (size_t)count);
        } else hob_write(request, handle, strlen(handle));
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
