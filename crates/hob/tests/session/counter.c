/* A counter for each visitor. */
#include <hob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    hob *server;
    hob_request *request;
    unsigned long count = 0;
    if (hob_connect(&server) != HOB_OK) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        char body[256], handle[160];
        size_t length = 0;
        const char *said = hob_variable(request, "HTSession", &length);
        snprintf(handle, sizeof handle, "%.*s", (int)length, said);
        hob_header(request, "Accept-HTSession", handle);
        hob_header(request, "Content-Type", "text/plain");
        int size = snprintf(body, sizeof body, "%s %ld %lu", handle, (long)getpid(), ++count);
        hob_write(request, body, (size_t)size);
        hob_finish(request);
    }
    return 0;
}
