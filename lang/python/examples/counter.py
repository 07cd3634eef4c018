"""Counts its visits: in memory while it runs, in a file (COUNTER_FILE) from run to run."""

import os
from pathlib import Path

import hob

file = Path(os.environ.get("COUNTER_FILE", "counter.txt"))
count = int(file.read_text()) if file.exists() else 0

for request in hob.requests():
    if request.method == "POST":
        count = 0
    count += 1
    request.respond(200, {"Content-Type": "text/plain"}, f"visit {count}\n")

# The server wants no more from this process: now is the time to keep what it knows.
file.write_text(f"{count}\n")
