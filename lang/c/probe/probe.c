/* probe.c: answers the shared cases of lang/probe/cases.json, over either carrier and as plain CGI. */
#define _GNU_SOURCE
#include <hob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN "0123456789abcdef"
#define PIECE 65536

/* A request with the words of its path. */
struct asked {
    hob_request *request;
    const char *first;  /* after the page's name, or "" */
    const char *second;
};

static void type(struct asked *asked, const char *value) {
    hob_header(asked->request, "Content-Type", value);
}

static void say(struct asked *asked, const char *text) {
    hob_write(asked->request, text, strlen(text));
}

static void say_text(struct asked *asked, const char *text) {
    type(asked, "text/plain");
    say(asked, text);
}

/* The bytes of the pattern from one place to another. */
static void say_pattern(struct asked *asked, size_t from, size_t to) {
    while (from < to) {
        void *place;
        size_t room;
        if (hob_space(asked->request, &place, &room) < 0) return;
        if (room > to - from) room = to - from;
        for (size_t at = 0; at < room; at++) ((char *)place)[at] = PATTERN[(from + at) % 16];
        if (hob_advance(asked->request, room) < 0) return;
        from += room;
    }
}

static int hello(struct asked *asked) {
    hob_header(asked->request, "Content-Length", "12");
    say_text(asked, "Hello world\n");
    return 0;
}

static int empty(struct asked *asked) {
    type(asked, "text/plain");
    return 0;
}

static int environ_(struct asked *asked) {
    size_t length;
    const char *names = hob_variable(asked->request, "HTTP_X_SHOW", &length);
    type(asked, "text/plain");
    while (names && *names) {
        size_t count = strcspn(names, ",");
        char *name = strndup(names, count);
        const char *value = hob_variable(asked->request, name, &length);
        say(asked, name);
        if (value) {
            say(asked, "=");
            hob_write(asked->request, value, length);
        }
        say(asked, value ? "\n" : " is not set\n");
        free(name);
        names += count + (names[count] == ',');
    }
    return 0;
}

static void same_type(struct asked *asked) {
    const char *value = hob_indexed(asked->request, HOB_CONTENT_TYPE, NULL);
    type(asked, value ? value : "application/octet-stream");
}

static int echo(struct asked *asked) {
    char piece[PIECE];
    int64_t count;
    if (!strcmp(asked->first, "stream")) {
        same_type(asked);
        while ((count = hob_read(asked->request, piece, sizeof piece)) > 0) {
            hob_write(asked->request, piece, (size_t)count);
            hob_flush(asked->request);
        }
        return 0;
    }
    char *body = NULL;
    size_t length = 0;
    while ((count = hob_read(asked->request, piece, sizeof piece)) > 0) {
        char *longer = realloc(body, length + (size_t)count);
        if (!longer) break;
        body = longer;
        memcpy(body + length, piece, (size_t)count);
        length += (size_t)count;
    }
    same_type(asked);
    if (length) hob_write(asked->request, body, length);
    free(body);
    return 0;
}

static int count(struct asked *asked) {
    char piece[PIECE], line[32];
    int64_t some;
    long long all = 0;
    while ((some = hob_read(asked->request, piece, sizeof piece)) > 0) all += some;
    snprintf(line, sizeof line, "%lld\n", all);
    say_text(asked, line);
    return 0;
}

static int ignore(struct asked *asked) {
    say_text(asked, "ignored\n");
    return 0;
}

static int status(struct asked *asked) {
    char line[32];
    int number = atoi(asked->first);
    hob_status(asked->request, number);
    if (number == 204 || number == 304) return 0;
    snprintf(line, sizeof line, "status %d\n", number);
    say_text(asked, line);
    return 0;
}

static int redirect(struct asked *asked) {
    hob_status(asked->request, 302);
    hob_header(asked->request, "Location", "https://example.invalid/there");
    return 0;
}

static int fields(struct asked *asked) {
    static char letters[4001];
    memset(letters, 'l', sizeof letters - 1);
    hob_header(asked->request, "Set-Cookie", "a=1; Path=/");
    hob_header(asked->request, "Set-Cookie", "b=2; HttpOnly");
    hob_header(asked->request, "X-Empty", "");
    hob_header(asked->request, "X-Long", letters);
    hob_header(asked->request, "X-Bytes", "\xc3\xa4\xc3\xb6\xc3\xbc");
    say_text(asked, "fields\n");
    return 0;
}

static int svg(struct asked *asked) {
    type(asked, "image/svg+xml");
    say(asked, "<svg/>");
    return 0;
}

static int size(struct asked *asked) {
    type(asked, "application/octet-stream");
    hob_header(asked->request, "Content-Length", asked->first);
    say_pattern(asked, 0, strtoul(asked->first, NULL, 10));
    return 0;
}

static int stream(struct asked *asked) {
    size_t all = strtoul(asked->first, NULL, 10), piece = strtoul(asked->second, NULL, 10);
    type(asked, "application/octet-stream");
    for (size_t at = 0; at < all; at += piece) {
        say_pattern(asked, at, at + piece < all ? at + piece : all);
        hob_flush(asked->request);
    }
    return 0;
}

static int slow(struct asked *asked) {
    char line[32];
    type(asked, "text/plain");
    for (int number = 1; number <= atoi(asked->first); number++) {
        snprintf(line, sizeof line, "line %d\n", number);
        say(asked, line);
        hob_flush(asked->request);
    }
    return 0;
}

static int trailers(struct asked *asked) {
    say_text(asked, "body\n");
    hob_trailer(asked->request, "X-Sum", "5");
    return 0;
}

static int early(struct asked *asked) {
    static const char link[] = "Link: </style.css>; rel=preload\n";
    hob_interim(asked->request, 103, link, sizeof link - 1);
    say_text(asked, "early\n");
    return 0;
}

static int fail(struct asked *asked) {
    if (!strcmp(asked->first, "after")) {
        say_text(asked, "some");
        hob_flush(asked->request);
    }
    return -1;
}

static int callout(struct asked *asked) {
    static const char *const questions[][2] = {
        {"noop", "NOOP:"}, {"unknown", "SING: la"}, {"timeout", "TIMEOUT: 30"}, {"map", "MAP-PATH: /"}};
    char reply[4096];
    if (!strcmp(asked->first, "log")) {
        hob_log(asked->request, "info", "probe");
        hob_trace(asked->request, "probe");
        say_text(asked, "logged\n");
        return 0;
    }
    for (size_t at = 0; at < sizeof questions / sizeof *questions; at++) {
        if (strcmp(asked->first, questions[at][0])) continue;
        int code = hob_callout(asked->request, questions[at][1], reply, sizeof reply, NULL);
        say_text(asked, code == HOB_OK ? "200\n" : code == HOB_REFUSED ? "400\n" : hob_explain(code));
    }
    return 0;
}

static const struct {
    const char *name;
    int (*answer)(struct asked *);
} pages[] = {
    {"hello", hello}, {"empty", empty}, {"environ", environ_}, {"echo", echo}, {"count", count},
    {"ignore", ignore}, {"status", status}, {"redirect", redirect}, {"fields", fields}, {"type", svg},
    {"size", size}, {"stream", stream}, {"slow", slow}, {"trailers", trailers}, {"early", early},
    {"fail", fail}, {"callout", callout}};

static int answer(hob_request *request) {
    const char *path = hob_indexed(request, HOB_PATH_INFO, NULL);
    char *words = strdup(path ? path : ""), *rest = words;
    char *parts[4] = {"", "", "", ""};
    for (int at = 0; at < 4 && rest; at++) parts[at] = strsep(&rest, "/");
    struct asked asked = {request, parts[2], parts[3]};
    int done = -1;
    for (size_t at = 0; at < sizeof pages / sizeof *pages; at++)
        if (!strcmp(parts[1], pages[at].name)) done = pages[at].answer(&asked);
    free(words);
    return done;
}

int main(void) {
    hob *server;
    hob_request *request;
    int has_failed = 0, started = hob_connect(&server);
    if (started < 0) return 1;
    while (hob_accept(server, &request) == HOB_OK) {
        if (answer(request) == 0) {
            hob_finish(request);
        } else {
            hob_fail(request, "as asked");
            has_failed = 1;
        }
    }
    hob_close(server);
    /* Whoever runs a CGI program looks at how it ends. */
    return started == HOB_PLAIN_CGI && has_failed;
}
