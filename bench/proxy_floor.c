/* The least that passing a request on can take: one epoll loop that reads a request, writes one to the
 * server behind over a connection of its own for each client, reads the answer and writes it back. It
 * parses and counts nothing; requests and answers come in one piece.
 *
 *     proxy_floor PORT PORT_BEHIND
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096

/* The other side of each descriptor. */
static int other[CONNECTIONS_MAX];
static char piece[65536];

static struct sockaddr_in at(const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void watch(int set, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) != 0) exit(1);
}

int main(int count, char **words) {
    if (count != 3) return 2;
    struct sockaddr_in own = at(words[1]), behind = at(words[2]);
    int listener = socket(AF_INET, SOCK_STREAM, 0), set = epoll_create1(0), yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (void *)&own, sizeof own) != 0 || listen(listener, 512) != 0) return 1;
    watch(set, listener);
    for (;;) {
        struct epoll_event events[256];
        int ready = epoll_wait(set, events, 256, -1);
        for (int n = 0; n < ready; n++) {
            int from = events[n].data.fd;
            if (from == listener) {
                int client = accept(listener, NULL, NULL), member = socket(AF_INET, SOCK_STREAM, 0);
                if (client < 0 || member < 0 || client >= CONNECTIONS_MAX || member >= CONNECTIONS_MAX) return 1;
                if (connect(member, (void *)&behind, sizeof behind) != 0) return 1;
                other[client] = member, other[member] = client;
                watch(set, client), watch(set, member);
                continue;
            }
            if (other[from] == 0) continue;
            ssize_t taken = recv(from, piece, sizeof piece, 0);
            if (taken > 0 && send(other[from], piece, (size_t)taken, MSG_NOSIGNAL) == taken) continue;
            close(from), close(other[from]);
            other[other[from]] = 0, other[from] = 0;
        }
    }
}
