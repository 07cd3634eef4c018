/* upload.c: a form, and what comes of it: files of any size, read piece by piece, with their names
 * and lengths told in the answer. */
#define _GNU_SOURCE
#include <hob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 65536
#define BOUNDARY_MAX 70

static const char form[] =
    "<!doctype html>\n<title>Upload</title>\n"
    "<form method=\"post\" enctype=\"multipart/form-data\">\n"
    "  <input type=\"file\" name=\"file\" multiple> <button>Send</button>\n</form>\n";

/* What has been read and not been looked at. */
struct body {
    hob_request *request;
    char bytes[2 * PIECE];
    size_t count;
    int is_over;
};

static int fill(struct body *body) {
    while (!body->is_over && body->count < PIECE) {
        int64_t count = hob_read(body->request, body->bytes + body->count, sizeof body->bytes - body->count);
        if (count < 0) return -1;
        if (count == 0) body->is_over = 1;
        body->count += (size_t)count;
    }
    return 0;
}

static void drop(struct body *body, size_t count) {
    body->count -= count;
    memmove(body->bytes, body->bytes + count, body->count);
}

/* Passes over bytes up to the mark and the mark itself; says how many were before it, -1 if it never comes. */
static long long pass(struct body *body, const char *mark, size_t length) {
    long long passed = 0;
    for (;;) {
        if (fill(body) < 0) return -1;
        char *found = memmem(body->bytes, body->count, mark, length);
        if (found) {
            size_t before = (size_t)(found - body->bytes);
            drop(body, before + length);
            return passed + (long long)before;
        }
        if (body->is_over) return -1;
        /* The mark may have begun in the last bytes. */
        size_t safe = body->count - (length - 1);
        drop(body, safe);
        passed += (long long)safe;
    }
}

/* The value of name="..." in a part's head. */
static void parameter(const char *head, const char *name, char *into, size_t size) {
    char mark[32];
    snprintf(mark, sizeof mark, "; %s=\"", name);
    const char *start = strcasestr(head, mark);
    into[0] = 0;
    if (!start) return;
    start += strlen(mark);
    size_t length = strcspn(start, "\"\r\n");
    snprintf(into, size, "%.*s", (int)length, start);
}

static int take_parts(hob_request *request, struct body *body, const char *boundary) {
    char mark[BOUNDARY_MAX + 8], line[1600], head[4096], name[256], file[256];
    size_t length = (size_t)snprintf(mark, sizeof mark, "\r\n--%s", boundary);
    /* The first boundary has no line end before it. */
    if (fill(body) < 0 || body->count < length - 2 || memcmp(body->bytes, mark + 2, length - 2) != 0) return -1;
    drop(body, length - 2);
    for (;;) {
        if (fill(body) < 0 || body->count < 2) return -1;
        if (!memcmp(body->bytes, "--", 2)) return 0;
        char *end = memmem(body->bytes, body->count, "\r\n\r\n", 4);
        if (!end || (size_t)(end - body->bytes) >= sizeof head) return -1;
        snprintf(head, sizeof head, "%.*s", (int)(end - body->bytes), body->bytes);
        drop(body, (size_t)(end - body->bytes) + 4);
        parameter(head, "name", name, sizeof name);
        parameter(head, "filename", file, sizeof file);
        long long bytes = pass(body, mark, length);
        if (bytes < 0) return -1;
        int count = snprintf(line, sizeof line, "%s: %s%s%lld bytes\n", name, file, file[0] ? ", " : "", bytes);
        hob_write(request, line, (size_t)count);
    }
}

static void answer(hob_request *request) {
    static struct body body;
    char boundary[BOUNDARY_MAX + 1];
    const char *method = hob_indexed(request, HOB_REQUEST_METHOD, NULL);
    const char *type = hob_indexed(request, HOB_CONTENT_TYPE, NULL);
    if (!method || strcmp(method, "POST")) {
        hob_header(request, "Content-Type", "text/html; charset=utf-8");
        hob_write(request, form, sizeof form - 1);
        return;
    }
    const char *found = type ? strcasestr(type, "boundary=") : NULL;
    size_t length = 0;
    if (found) {
        found += strlen("boundary=");
        if (*found == '"') found++;
        length = strcspn(found, "\"; ");
    }
    hob_header(request, "Content-Type", "text/plain; charset=utf-8");
    if (length == 0 || length > BOUNDARY_MAX) {
        hob_status(request, 415);
        hob_write(request, "this is no form with files\n", 27);
        return;
    }
    snprintf(boundary, sizeof boundary, "%.*s", (int)length, found);
    body.request = request;
    body.count = 0;
    body.is_over = 0;
    if (take_parts(request, &body, boundary) < 0) {
        hob_status(request, 400);
        hob_write(request, "the form is cut or malformed\n", 29);
    }
}

int main(void) {
    hob *server;
    hob_request *request;
    if (hob_connect(&server) < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        answer(request);
        hob_finish(request);
    }
    hob_close(server);
    return 0;
}
