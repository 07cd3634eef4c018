#!/usr/bin/env python3
"""CGI: the query string says how many KiB of body."""
import os
import sys

kib = int(os.environ.get("QUERY_STRING") or 0)
sys.stdout.write("Content-Type: text/plain\r\n\r\n")
line = "x" * 1023 + "\n"
for _ in range(kib):
    sys.stdout.write(line)
