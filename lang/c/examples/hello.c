/* hello.c: says hello to whoever asks, and from which of its processes. */
#include <hob.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    hob *server;
    hob_request *request;
    int code = hob_connect(&server);
    if (code < 0) {
        fprintf(stderr, "hello: %s\n", hob_explain(code));
        return 1;
    }
    while (hob_accept(server, &request) == HOB_OK) {
        char text[1200];
        size_t length;
        const char *path = hob_indexed(request, HOB_PATH_INFO, &length);
        int count = snprintf(text, sizeof text, "hello from process %ld over %s, you asked for \"%.1000s\"\n",
                             (long)getpid(), hob_carrier(server), path ? path : "");
        hob_header(request, "Content-Type", "text/plain; charset=utf-8");
        hob_write(request, text, (size_t)count);
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
