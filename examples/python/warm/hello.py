#!/usr/bin/env python3
"""The least a CGI script does. `hob cost` says what it costs as cgi, and what kept warm."""

print("Content-Type: text/plain; charset=utf-8\n")
print("Hello from a script that was not changed.")
