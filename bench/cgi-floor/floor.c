/* The least a CGI request costs: a pipe, a process, its output read to the end, its exit. No
 * connection, no request, no change of user, no limits, nothing logged.
 *
 *   floor RUNS ENVIRONMENT PROGRAM [ARGUMENT...]
 *
 * ENVIRONMENT is a file with a variable per line: what a server gives the program. The caller
 * measures the CPU time, of this process and of all it starts. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VARIABLES_MAX = 256, ENVIRONMENT_BYTES_MAX = 64 * 1024 };

static char text[ENVIRONMENT_BYTES_MAX + 1];
static char *variables[VARIABLES_MAX + 1];

static void stop(const char *what) {
    perror(what);
    exit(1);
}

static void read_environment(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, ENVIRONMENT_BYTES_MAX) <= 0) stop(path);
    int count = 0;
    for (char *line = strtok(text, "\n"); line && count < VARIABLES_MAX; line = strtok(NULL, "\n"))
        variables[count++] = line;
}

/* Runs the program once; returns the bytes it printed. */
static size_t run(char **arguments) {
    static char buffer[64 * 1024];
    int ends[2], status;
    struct rusage usage;
    if (pipe2(ends, O_CLOEXEC)) stop("pipe");
    pid_t child = vfork();
    if (child == 0) {
        dup2(ends[1], 1);
        execve(arguments[0], arguments, variables);
        _exit(127);
    }
    if (child < 0) stop("vfork");
    close(ends[1]);
    size_t bytes = 0;
    for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) bytes += count;
    close(ends[0]);
    if (wait4(child, &status, 0, &usage) != child || status != 0) stop("the program failed");
    return bytes;
}

int main(int count, char **words) {
    if (count < 4) return fputs("usage: floor RUNS ENVIRONMENT PROGRAM [ARGUMENT...]\n", stderr), 2;
    read_environment(words[2]);
    size_t bytes = 0;
    for (long left = atol(words[1]); left > 0; left--) bytes += run(words + 3);
    return bytes == 0;
}
