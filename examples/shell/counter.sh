#!/bin/sh
# Counts its requests, in one process: nothing is started for the next. Without a library: lines come
# in on the pipe that CGIPLUSIN names, an answer goes out as CGI prints it, then the line that
# CGIPLUSEOF holds.
count=0
while IFS= read -r beginning; do
    while IFS= read -r line && [ -n "$line" ]; do
        case $line in PATH_INFO=*) path=${line#*=} ;; esac
    done
    count=$((count + 1))
    printf 'Content-Type: text/plain\n\n'
    printf 'request %s of process %s, for %s\n' "$count" "$$" "$path"
    printf '%s\n' "$CGIPLUSEOF"
done <"$CGIPLUSIN"
