/* A file as CGI: it is opened and read at each request, as the AS/400's "CGI (HTML)" did. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    static char buffer[65536] = "Content-Type: text/html\r\n\r\n";
    size_t head = strlen(buffer);
    int file = open(PAGE, O_RDONLY);
    if (file < 0) return 1;
    ssize_t count = read(file, buffer + head, sizeof buffer - head);
    close(file);
    if (count < 0) return 1;
    return write(1, buffer, head + (size_t)count) == (ssize_t)(head + (size_t)count) ? 0 : 1;
}
