/* One program in three ways: started for each request (CGI), kept behind FastCGI (`fastcgi SOCKET`,
 * which is a path or a port, or `fastcgi` with the listening socket as descriptor 0), and kept behind
 * lines (CGIPLUSIN in its environment). QUERY_STRING says how many KiB of body it answers with, and
 * after a `&` how many KiB are written at once. */
#include <ctype.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BLOCK 65536
#define BLOCK_MAX (1 << 20)
static const char head[] = "Content-Type: text/plain\r\n\r\n";
static char block[BLOCK_MAX], buffer[BLOCK_MAX + 4096];

/* Bytes that are written at once. */
static long piece_of(const char *query) {
    const char *more = query ? strchr(query, '&') : NULL;
    long kib = more ? atol(more + 1) : 0;
    return kib > 0 && kib <= BLOCK_MAX / 1024 ? kib * 1024 : BLOCK;
}

static int write_all(int to, const void *bytes, size_t length) {
    const char *from = bytes;
    while (length > 0) {
        ssize_t written = write(to, from, length);
        if (written <= 0) return -1;
        from += written;
        length -= (size_t)written;
    }
    return 0;
}

static int read_all(int from, void *bytes, size_t length) {
    char *to = bytes;
    while (length > 0) {
        ssize_t count = read(from, to, length);
        if (count <= 0) return -1;
        to += count;
        length -= (size_t)count;
    }
    return 0;
}

/* ---- CGI: a head, then blocks; the first leaves with the head in one write. */
static int cgi(void) {
    const char *query = getenv("QUERY_STRING");
    long left = (query ? atol(query) : 0) * 1024, piece = piece_of(query);
    size_t begun = sizeof head - 1;
    memcpy(buffer, head, begun);
    long first = left < piece ? left : piece;
    memcpy(buffer + begun, block, (size_t)first);
    if (write_all(1, buffer, begun + (size_t)first) < 0) return 1;
    for (left -= first; left > 0; left -= piece)
        if (write_all(1, block, (size_t)(left < piece ? left : piece)) < 0) return 1;
    return 0;
}

/* ---- FastCGI: version, type, id (2), length (2), padding, reserved. */
static char *record(char *at, int type, unsigned id, size_t length) {
    unsigned char fields[8] = {1, (unsigned char)type, (unsigned char)(id >> 8), (unsigned char)id,
                               (unsigned char)(length >> 8), (unsigned char)length, 0, 0};
    memcpy(at, fields, sizeof fields);
    return at + sizeof fields;
}

/* The number in QUERY_STRING among pairs of lengths, names and values. */
static long query_of(const unsigned char *at, size_t length) {
    const unsigned char *end = at + length;
    while (at + 2 <= end) {
        size_t sizes[2];
        for (int i = 0; i < 2 && at < end; i++) {
            if (*at < 128) sizes[i] = *at++;
            else if (at + 4 <= end) {
                sizes[i] = (size_t)(*at & 127) << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
                at += 4;
            } else return 0;
        }
        if (sizes[0] + sizes[1] > (size_t)(end - at)) return 0;
        if (sizes[0] == 12 && !memcmp(at, "QUERY_STRING", 12)) {
            char digits[16] = "";
            memcpy(digits, at + 12, sizes[1] < 15 ? sizes[1] : 15);
            return atol(digits);
        }
        at += sizes[0] + sizes[1];
    }
    return 0;
}

/* Answers in records of up to 32 KiB, so that a short answer is one write. */
static int answer(int peer, unsigned id, long kib) {
    size_t left = (size_t)kib * 1024, piece = sizeof head - 1;
    char *at = record(buffer, 6, id, piece);
    memcpy(at, head, piece);
    at += piece;
    while (left > 0) {
        piece = left < 32768 ? left : 32768;
        at = record(at, 6, id, piece);
        memcpy(at, block, piece);
        at += piece;
        left -= piece;
        if ((size_t)(at - buffer) + 32768 + 64 > sizeof buffer) {
            if (write_all(peer, buffer, (size_t)(at - buffer)) < 0) return -1;
            at = buffer;
        }
    }
    at = record(at, 6, id, 0);
    at = record(at, 3, id, 8);
    memset(at, 0, 8);
    return write_all(peer, buffer, (size_t)(at + 8 - buffer));
}

/* Reads one request and answers it; not 0 when the connection is over. */
static int fastcgi_request(int peer) {
    static unsigned char parameters[1 << 16], content[1 << 16];
    size_t length = 0;
    int keeps = 0;
    for (;;) {
        unsigned char fields[8];
        if (read_all(peer, fields, 8) < 0) return -1;
        size_t size = (size_t)fields[4] << 8 | fields[5];
        unsigned id = (unsigned)fields[2] << 8 | fields[3];
        if (read_all(peer, content, size) < 0) return -1;
        unsigned char padding[256];
        if (read_all(peer, padding, fields[6]) < 0) return -1;
        if (fields[1] == 1) keeps = content[2] & 1;
        if (fields[1] == 4 && length + size <= sizeof parameters) {
            memcpy(parameters + length, content, size);
            length += size;
        }
        if (fields[1] == 5 && size == 0) {
            if (answer(peer, id, query_of(parameters, length)) < 0) return -1;
            return keeps ? 0 : -1;
        }
    }
}

/* A socket that listens at a path or a port, or -1. */
static int listening(const char *at) {
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in port = {.sin_family = AF_INET};
    int is_port = isdigit((unsigned char)*at), is_on = 1;
    int listener = socket(is_port ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    if (is_port) {
        port.sin_port = htons((uint16_t)atoi(at));
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &is_on, sizeof is_on);
    } else {
        if (strlen(at) >= sizeof path.sun_path) return -1;
        strcpy(path.sun_path, at);
        umask(0);
    }
    const struct sockaddr *address = is_port ? (void *)&port : (void *)&path;
    if (bind(listener, address, is_port ? sizeof port : sizeof path) < 0) return -1;
    return listen(listener, 1024) < 0 ? -1 : listener;
}

static int fastcgi(const char *at) {
    struct pollfd all[129] = {{.fd = at ? listening(at) : 0, .events = POLLIN}};
    nfds_t count = 1;
    if (all[0].fd < 0) return 1;
    for (;;) {
        all[0].events = count < 129 ? POLLIN : 0;
        if (poll(all, count, -1) < 0) return 1;
        nfds_t known = count;
        if (all[0].revents & POLLIN) {
            int peer = accept(all[0].fd, NULL, NULL);
            if (peer >= 0) all[count++] = (struct pollfd){.fd = peer, .events = POLLIN};
        }
        for (nfds_t i = known; i-- > 1;) {
            if (!all[i].revents || fastcgi_request(all[i].fd) == 0) continue;
            close(all[i].fd);
            all[i] = all[--count];
        }
    }
}

/* ---- Lines: "!" and NAME=VALUE lines up to an empty one, or "!!LENGTH" and entries of a 16-bit
 * length, "NAME=VALUE" and NUL. */
static long lines_request(FILE *input, long size, long *piece) {
    long kib = 0;
    if (size == 0) {
        while (fgets(buffer, sizeof buffer, input) && buffer[0] != '\n')
            if (!strncmp(buffer, "QUERY_STRING=", 13)) {
                kib = atol(buffer + 13);
                *piece = piece_of(buffer + 13);
            }
        return kib;
    }
    if ((size_t)size > sizeof buffer || fread(buffer, 1, (size_t)size, input) != (size_t)size) return 0;
    for (size_t at = 0; at + 2 <= (size_t)size;) {
        size_t length = (unsigned char)buffer[at] | (size_t)(unsigned char)buffer[at + 1] << 8;
        if (length == 0 || length > (size_t)size - at - 2) break;
        if (!strncmp(buffer + at + 2, "QUERY_STRING=", 13)) {
            kib = atol(buffer + at + 15);
            *piece = piece_of(buffer + at + 15);
        }
        at += 2 + length;
    }
    return kib;
}

static int lines(const char *name) {
    static char output[65536];
    const char *end = getenv("CGIPLUSEOF"), *escape = getenv("CGIPLUSESC"), *over = getenv("CGIPLUSEOT");
    FILE *input = fopen(name, "r");
    char line[64];
    int is_asked = 0;
    if (!input || !end || !escape || !over) return 1;
    setvbuf(stdout, output, _IOFBF, sizeof output);
    while (fgets(line, sizeof line, input)) {
        if (line[0] != '!') continue;
        long piece = BLOCK, left = lines_request(input, line[1] == '!' ? atol(line + 2) : 0, &piece) * 1024;
        if (!is_asked++) printf("%s\n!CGIPLUS: struct\n%s\n", escape, over);
        fputs("Content-Type: text/plain\n\n", stdout);
        for (; left > 0; left -= piece) {
            fwrite(block, 1, (size_t)(left < piece ? left : piece), stdout);
            if (piece < BLOCK) fflush(stdout);
        }
        printf("%s\n", end);
        fflush(stdout);
    }
    return 0;
}

int main(int count, char **arguments) {
    const char *input = getenv("CGIPLUSIN");
    memset(block, 'x', sizeof block);
    for (size_t i = 1023; i < sizeof block; i += 1024) block[i] = '\n';
    if (count > 1 && !strcmp(arguments[1], "fastcgi")) return fastcgi(count > 2 ? arguments[2] : NULL);
    return input ? lines(input) : cgi();
}
