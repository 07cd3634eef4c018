/*
 * A CGI program in C: a head, an empty line, a body. The environment says what was asked for.
 *
 *     cc -O2 -o cgi-bin/boil boil.c
 *
 * It boils water: /cgi-bin/boil?cups=3 says how long three cups take.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUPS_MAX = 12, CUP_ML = 250, WATTS = 2000, DEGREES = 80 };

/* What `cups=` in the query says, 1 when it says nothing, 0 when it is no number of cups. */
static long cups_wanted(const char *query)
{
    if (query == NULL || strncmp(query, "cups=", 5) != 0)
        return 1;
    char *end;
    long cups = strtol(query + 5, &end, 10);
    if (end == query + 5 || (*end != '\0' && *end != '&') || cups < 1 || cups > CUPS_MAX)
        return 0;
    return cups;
}

int main(void)
{
    long cups = cups_wanted(getenv("QUERY_STRING"));
    if (cups == 0) {
        puts("Status: 400 Bad Request\nContent-Type: text/plain; charset=utf-8\n");
        printf("The kettle holds 1 to %d cups: try ?cups=3\n", CUPS_MAX);
        return 0;
    }
    puts("Content-Type: text/plain; charset=utf-8\n");
    /* 4.2 joules warm a gram of water by a degree. */
    double seconds = 4.2 * CUP_ML * (double)cups * DEGREES / WATTS;
    printf("%ld cup%s: the kettle boils in %.0f seconds.\n", cups, cups == 1 ? "" : "s", seconds);
    puts("The C program that worked this out was gone long before.");
    return 0;
}
