/* The program of the side-by-side tool that speaks lines, without any library: QUERY_STRING says how
 * many KiB of body. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char variables[1 << 18], kib_of_body[1024], output[65536];

/* Bytes of the block that follows "!!"; 0 for lines, less when there is no other request. */
static long next_request(FILE *input) {
    char line[64];
    while (fgets(line, sizeof line, input)) {
        if (!strcmp(line, "!\n")) return 0;
        if (!strncmp(line, "!!", 2)) return atol(line + 2);
    }
    return -1;
}

/* Lines up to an empty one; QUERY_STRING as a number. */
static long read_record(FILE *input) {
    long kib = 0;
    while (fgets(variables, sizeof variables, input) && variables[0] != '\n')
        if (!strncmp(variables, "QUERY_STRING=", 13)) kib = atol(variables + 13);
    return kib;
}

/* Entries {16-bit length, "NAME=value", NUL}; a length of zero ends them. */
static long read_struct(FILE *input, size_t size) {
    size_t at = 0;
    long kib = 0;
    if (size > sizeof variables || fread(variables, 1, size, input) != size) return 0;
    while (at + 2 <= size) {
        size_t length = (unsigned char)variables[at] | (size_t)(unsigned char)variables[at + 1] << 8;
        if (length == 0 || length > size - at - 2) break;
        if (!strncmp(variables + at + 2, "QUERY_STRING=", 13)) kib = atol(variables + at + 15);
        at += 2 + length;
    }
    return kib;
}

int main(void) {
    const char *end = getenv("CGIPLUSEOF"), *escape = getenv("CGIPLUSESC"), *over = getenv("CGIPLUSEOT");
    const char *name = getenv("CGIPLUSIN");
    FILE *input = name ? fopen(name, "r") : NULL;
    int is_asked = 0;
    long size;
    if (!input || !end || !escape || !over) return 1;
    memset(kib_of_body, 'x', sizeof kib_of_body);
    setvbuf(stdout, output, _IOFBF, sizeof output);
    while ((size = next_request(input)) >= 0) {
        long kib = size > 0 ? read_struct(input, (size_t)size) : read_record(input);
        if (!is_asked++) printf("%s\n!CGIPLUS: struct\n%s\n", escape, over);
        fputs("Content-Type: text/plain\n\n", stdout);
        for (; kib > 0; kib--) fwrite(kib_of_body, 1, sizeof kib_of_body, stdout);
        printf("%s\n", end);
        fflush(stdout);
    }
    return 0;
}
