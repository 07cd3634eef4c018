/* tea.c: a program that stays, in C: what a path names is how long it steeps. */
#include <hob.h>
#include <stdio.h>
#include <string.h>

static const struct { const char *name; int minutes; } teas[] = {
    {"assam", 4}, {"oolong", 3}, {"sencha", 2},
};

static void answer(hob_request *request, unsigned long count) {
    const char *path = hob_indexed(request, HOB_PATH_INFO, NULL);
    char text[128];
    hob_header(request, "Content-Type", "text/plain; charset=utf-8");
    for (size_t n = 0; n < sizeof teas / sizeof teas[0]; n++) {
        if (!path || strcmp(path + 1, teas[n].name)) continue;
        int length = snprintf(text, sizeof text, "%s steeps for %d minutes (answer %lu of this process)\n",
                              teas[n].name, teas[n].minutes, count);
        hob_write(request, text, (size_t)length);
        return;
    }
    const char none[] = "There is assam, oolong and sencha.\n";
    hob_status(request, 404);
    hob_write(request, none, sizeof none - 1);
}

int main(void) {
    hob *server;
    hob_request *request;
    unsigned long count = 0;
    int code = hob_connect(&server);
    if (code < 0) {
        fprintf(stderr, "tea: %s\n", hob_explain(code));
        return 1;
    }
    while (hob_accept(server, &request) == HOB_OK) {
        answer(request, ++count);
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
