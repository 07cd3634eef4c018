/* Counts the instructions that threads of a running program execute while a command runs.
 *
 *     steps [-p PLACES] THREAD[,THREAD...] COMMAND [ARGUMENT...]
 *
 * Each thread (a number of /proc/PID/task) is stepped through from one instruction to the next; a
 * system call is one step, whatever the kernel does in it. Other threads and children run freely.
 * Prints how many there were; with -p, each address that was executed, once, to the file PLACES.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 16
#define PLACES_MAX (1u << 21)

static pid_t threads[THREADS_MAX];
static int thread_count;
static unsigned long *places;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void note(unsigned long address) {
    unsigned long at = (address * 0x9E3779B97F4A7C15ul) >> 43;
    while (places[at] != 0 && places[at] != address)
        at = (at + 1) % PLACES_MAX;
    places[at] = address;
}

/* Notes what the thread executes next. */
static void note_next(pid_t thread) {
    errno = 0;
    unsigned long address = ptrace(PTRACE_PEEKUSER, thread, offsetof(struct user_regs_struct, rip), 0);
    if (errno != 0)
        fail("the instruction's address");
    note(address);
}

static int is_ours(pid_t pid) {
    for (int i = 0; i < thread_count; i++)
        if (threads[i] == pid)
            return 1;
    return 0;
}

/* Has the thread's last step a signal still to be heard of? Let go of with it, the thread would die. */
static int has_trap(pid_t thread) {
    struct __ptrace_peeksiginfo_args first = {.off = 0, .flags = 0, .nr = 1};
    siginfo_t signal = {0};
    return ptrace(PTRACE_PEEKSIGINFO, thread, &first, &signal) == 1 && signal.si_signo == SIGTRAP;
}

int main(int count, char **words) {
    const char *out = NULL;
    words++;
    if (words[0] && strcmp(words[0], "-p") == 0) {
        out = words[1];
        words += 2;
        places = calloc(PLACES_MAX, sizeof *places);
    }
    if (count < 3 || !words[0] || !words[1]) {
        fprintf(stderr, "usage: steps [-p PLACES] THREAD[,THREAD...] COMMAND...\n");
        return 2;
    }
    for (char *word = strtok(words[0], ","); word && thread_count < THREADS_MAX; word = strtok(NULL, ","))
        threads[thread_count++] = atoi(word);
    for (int i = 0; i < thread_count; i++) {
        if (ptrace(PTRACE_SEIZE, threads[i], 0, 0) != 0)
            fail("trace a thread");
        if (ptrace(PTRACE_INTERRUPT, threads[i], 0, 0) != 0)
            fail("stop a thread");
        if (waitpid(threads[i], NULL, __WALL) < 0)
            fail("wait for a thread");
        ptrace(PTRACE_SINGLESTEP, threads[i], 0, 0);
    }
    pid_t command = fork();
    if (command == 0) {
        execvp(words[1], words + 1);
        _exit(127);
    }
    unsigned long steps = 0;
    int code = 1, left = thread_count, is_over = 0;
    while (left > 0) {
        int status;
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0)
            fail("wait");
        if (pid == command) {
            code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
            is_over = 1;
            for (int i = 0; i < thread_count; i++)
                ptrace(PTRACE_INTERRUPT, threads[i], 0, 0);
            continue;
        }
        if (!is_ours(pid))
            continue;
        if (!WIFSTOPPED(status)) {
            fprintf(stderr, "a thread ended\n");
            return 1;
        }
        int event = status >> 16, signal = WSTOPSIG(status);
        if (is_over && event == PTRACE_EVENT_STOP && has_trap(pid)) {
            ptrace(PTRACE_CONT, pid, 0, 0);
            continue;
        }
        if (is_over && (event == PTRACE_EVENT_STOP || (event == 0 && signal == SIGTRAP))) {
            ptrace(PTRACE_DETACH, pid, 0, 0);
            left--;
            continue;
        }
        if (event == 0 && signal == SIGTRAP) {
            steps++;
            signal = 0;
        } else if (event != 0) {
            signal = 0;
        }
        if (places)
            note_next(pid);
        ptrace(PTRACE_SINGLESTEP, pid, 0, signal);
    }
    if (out) {
        FILE *file = fopen(out, "w");
        if (!file)
            fail(out);
        for (unsigned i = 0; i < PLACES_MAX; i++)
            if (places[i])
                fprintf(file, "%lx\n", places[i]);
        fclose(file);
    }
    printf("%lu\n", steps);
    return code;
}
