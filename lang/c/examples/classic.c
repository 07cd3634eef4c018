/* classic.c: the line protocol, without any library. Old programs are written like this.
 *
 * The server starts the program once. Variables come as lines on the pipe that CGIPLUSIN names, a
 * body on standard input, exactly CONTENT_LENGTH bytes. The answer goes to standard output as CGI
 * has it, and then the string that CGIPLUSEOF holds. Started as plain CGI it answers once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLES_MAX 200

static char *variables[VARIABLES_MAX + 1];
static char block[1 << 18];

/* One line without its end; 0 when there are no more. */
static int line(FILE *input, char *into, size_t size) {
    if (!fgets(into, (int)size, input)) return 0;
    into[strcspn(into, "\r\n")] = 0;
    return 1;
}

/* Lines "NAME=value" up to an empty one. */
static int read_record(FILE *input) {
    size_t used = 0;
    int count = 0;
    while (count < VARIABLES_MAX && line(input, block + used, sizeof block - used)) {
        if (!block[used]) return 1;
        variables[count++] = block + used;
        variables[count] = NULL;
        used += strlen(block + used) + 1;
    }
    return 0;
}

/* A block of entries {16-bit length, "NAME=value", NUL}; a length of zero ends it. */
static int read_struct(FILE *input, size_t size) {
    size_t at = 0;
    int count = 0;
    if (size > sizeof block || fread(block, 1, size, input) != size) return 0;
    while (at + 2 <= size && count < VARIABLES_MAX) {
        size_t length = (unsigned char)block[at] | (size_t)(unsigned char)block[at + 1] << 8;
        if (length == 0) return 1;
        if (length > size - at - 2 || block[at + 1 + length] != 0) return 0;
        variables[count++] = block + at + 2;
        variables[count] = NULL;
        at += 2 + length;
    }
    return 0;
}

/* Waits for the next request, which is the idle state; 0 when there will be none. */
static int next_request(FILE *input) {
    char marker[64];
    variables[0] = NULL;
    while (line(input, marker, sizeof marker)) {
        if (!strcmp(marker, "!")) return read_record(input);
        if (!strncmp(marker, "!!", 2)) return read_struct(input, (size_t)atol(marker + 2));
        /* Anything else is passed over. */
    }
    return 0;
}

static const char *variable(const char *name) {
    size_t length = strlen(name);
    for (char **entry = variables; *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=') return *entry + length + 1;
    return "";
}

static void answer(unsigned long number) {
    char piece[4096];
    long left = atol(variable("CONTENT_LENGTH")), sum = 0;
    while (left > 0) {
        size_t count = fread(piece, 1, left < (long)sizeof piece ? (size_t)left : sizeof piece, stdin);
        if (count == 0) break;
        for (size_t n = 0; n < count; n++) sum += (unsigned char)piece[n];
        left -= (long)count;
    }
    printf("Content-Type: text/plain\n\nrequest %lu: %s %s\nsum of the body: %ld\n", number,
           variable("REQUEST_METHOD"), variable("PATH_INFO"), sum);
}

int main(void) {
    extern char **environ;
    const char *end = getenv("CGIPLUSEOF"), *escape = getenv("CGIPLUSESC"), *over = getenv("CGIPLUSEOT");
    const char *name = getenv("CGIPLUSIN");
    unsigned long number = 0;
    if (!end) {
        for (int n = 0; environ[n] && n < VARIABLES_MAX; n++) variables[n] = environ[n];
        answer(1);
        return 0;
    }
    FILE *input = name ? fopen(name, "r") : stdin;
    if (!input) return 1;
    while (next_request(input)) {
        answer(++number);
        /* From the next request on as a block: asked for once, no reply wanted. */
        if (number == 1 && escape && over) printf("%s\n!CGIPLUS: struct\n%s\n", escape, over);
        printf("%s\n", end);
        fflush(stdout);
    }
    return 0;
}
