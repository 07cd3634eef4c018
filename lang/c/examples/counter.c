/* counter.c: what a program that stays can do and a CGI program cannot: it remembers. */
#include <hob.h>
#include <stdio.h>

int main(void) {
    hob *server;
    hob_request *request;
    unsigned long count = 0;
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        char text[64];
        int length = snprintf(text, sizeof text, "request number %lu\n", ++count);
        hob_header(request, "Content-Type", "text/plain");
        hob_header(request, "Cache-Control", "no-store");
        hob_write(request, text, (size_t)length);
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
