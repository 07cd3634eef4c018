#!/bin/sh
# Says hello, in any sh: resident = { run = ["./hello.sh"], carrier = "lines" }; also runs as plain
# CGI.
. "$(dirname "$0")/../hob.sh"

while hob_accept; do
    printf 'Content-Type: text/plain\n\nHello, %s\n' "${REMOTE_ADDR:-you}"
    hob_finish
done
