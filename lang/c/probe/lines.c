/* lines.c: answers the shared cases of lang/probe/cases.json over the line protocol, without any
 * library, and as plain CGI. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLES_MAX 200
#define PATTERN "0123456789abcdef"
#define TEXT "Content-Type: text/plain\n\n"
#define OCTETS "Content-Type: application/octet-stream\n"

extern char **environ;

static char *variables[VARIABLES_MAX + 1];
static char block[1 << 18];
static FILE *input;
static const char *end, *escape, *over;

/* One line without its end; 0 when there are no more. */
static int line(char *into, size_t size) {
    if (!fgets(into, (int)size, input)) return 0;
    into[strcspn(into, "\r\n")] = 0;
    return 1;
}

/* Waits for a request and reads its variables; 0 when there will be none. */
static int next_request(void) {
    size_t used = 0;
    int count = 0;
    do
        if (!line(block, sizeof block)) return 0;
    while (strcmp(block, "!"));
    while (count < VARIABLES_MAX && line(block + used, sizeof block - used) && block[used]) {
        variables[count++] = block + used;
        used += strlen(block + used) + 1;
    }
    variables[count] = NULL;
    return 1;
}

/* The value of a variable, or NULL. */
static const char *variable(const char *name, size_t length) {
    for (char **entry = variables; *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=') return *entry + length + 1;
    return NULL;
}

static const char *value(const char *name) {
    const char *found = variable(name, strlen(name));
    return found ? found : "";
}

/* The body, piece by piece; how long it was. */
static long long body(int is_sent_back) {
    static char piece[65536];
    long long left = atoll(value("CONTENT_LENGTH")), all = left;
    while (left > 0) {
        size_t count = fread(piece, 1, left < (long long)sizeof piece ? (size_t)left : sizeof piece, stdin);
        if (count == 0) exit(1);
        if (is_sent_back) fwrite(piece, 1, count, stdout);
        left -= (long long)count;
    }
    return all;
}

static void pattern(size_t from, size_t to) {
    for (; from < to; from++) putchar(PATTERN[from % 16]);
}

static void show(void) {
    const char *names = value("HTTP_X_SHOW");
    printf(TEXT);
    while (*names) {
        size_t length = strcspn(names, ",");
        const char *found = variable(names, length);
        printf("%.*s%s%s\n", (int)length, names, found ? "=" : "", found ? found : " is not set");
        names += length + (names[length] == ',');
    }
}

static void stream(const char *total, const char *piece) {
    size_t all = strtoul(total, NULL, 10), step = strtoul(piece, NULL, 10);
    printf(OCTETS "\n");
    for (size_t at = 0; at < all; at += step) {
        pattern(at, at + step < all ? at + step : all);
        fflush(stdout);
    }
}

static void slow(int count) {
    printf(TEXT);
    for (int number = 1; number <= count; number++) {
        printf("line %d\n", number);
        fflush(stdout);
    }
}

static void fields(void) {
    printf("Set-Cookie: a=1; Path=/\nSet-Cookie: b=2; HttpOnly\nX-Empty:\nX-Long: ");
    for (int count = 0; count < 4000; count++) putchar('l');
    printf("\nX-Bytes: \xc3\xa4\xc3\xb6\xc3\xbc\n" TEXT "fields\n");
}

static void fail(const char *when) {
    if (!strcmp(when, "after")) {
        printf(TEXT "some");
        fflush(stdout);
    }
    exit(1);
}

/* Asks the server; only the code of its reply is told. */
static void ask(const char *question) {
    char reply[4096] = "400";
    if (escape && over) {
        printf("%s\n%s\n%s\n", escape, question, over);
        fflush(stdout);
        if (!line(reply, sizeof reply)) exit(1);
    }
    printf(TEXT "%.3s\n", reply);
}

static void callout(const char *which) {
    if (!strcmp(which, "noop")) ask("NOOP:");
    if (!strcmp(which, "unknown")) ask("SING: la");
    if (!strcmp(which, "timeout")) ask("TIMEOUT: 30");
    if (!strcmp(which, "map")) ask("MAP-PATH: /");
    if (strcmp(which, "log")) return;
    if (escape && over) {
        printf("%s\n!LOG: info probe\n%s\n", escape, over);
        printf("%s\n!TRACE: probe\n%s\n", escape, over);
    }
    printf(TEXT "logged\n");
}

static void answer(void) {
    char words[4][64] = {"", "", "", ""};
    sscanf(value("PATH_INFO"), "/%63[^/]/%63[^/]/%63[^/]", words[1], words[2], words[3]);
    const char *page = words[1], *first = words[2];
    const char *type = *value("CONTENT_TYPE") ? value("CONTENT_TYPE") : "text/plain";
    if (!strcmp(page, "hello")) printf("Content-Length: 12\n" TEXT "Hello world\n");
    if (!strcmp(page, "empty")) printf(TEXT);
    if (!strcmp(page, "environ")) show();
    if (!strcmp(page, "echo")) printf("Content-Type: %s\n\n", type), body(1);
    if (!strcmp(page, "count")) printf(TEXT "%lld\n", body(0));
    if (!strcmp(page, "ignore")) printf(TEXT "ignored\n");
    if (!strcmp(page, "redirect")) printf("Status: 302\nLocation: https://example.invalid/there\n\n");
    if (!strcmp(page, "fields")) fields();
    if (!strcmp(page, "type")) printf("Content-Type: image/svg+xml\n\n<svg/>");
    if (!strcmp(page, "size")) {
        printf("Content-Length: %s\n" OCTETS "\n", first);
        pattern(0, strtoul(first, NULL, 10));
    }
    if (!strcmp(page, "stream")) stream(first, words[3]);
    if (!strcmp(page, "slow")) slow(atoi(first));
    if (!strcmp(page, "fail")) fail(first);
    if (!strcmp(page, "callout")) callout(first);
    if (strcmp(page, "status")) return;
    printf("Status: %s\n", first);
    if (!strcmp(first, "204") || !strcmp(first, "304")) printf("\n");
    else printf(TEXT "status %s\n", first);
}

int main(void) {
    const char *name = getenv("CGIPLUSIN");
    end = getenv("CGIPLUSEOF"), escape = getenv("CGIPLUSESC"), over = getenv("CGIPLUSEOT");
    if (!end) {
        for (int at = 0; environ[at] && at < VARIABLES_MAX; at++) variables[at] = environ[at];
        answer();
        return 0;
    }
    input = name ? fopen(name, "r") : stdin;
    if (!input) return 1;
    while (next_request()) {
        answer();
        printf("%s\n", end);
        fflush(stdout);
    }
    return 0;
}
