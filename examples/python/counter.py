"""Counts requests, as a plain loop. Each process has a count of its own."""

import os

import hob

for count, request in enumerate(hob.requests(), 1):
    text = f"request {count} of process {os.getpid()}, for {request.environ['PATH_INFO']}\n"
    request.respond(200, {"Content-Type": "text/plain; charset=utf-8"}, text)
