#!/usr/bin/env python3
"""Says how long the body of a request is, and its SHA-256: judges upload to it."""

import hashlib
import sys

size, total = 0, hashlib.sha256()
while piece := sys.stdin.buffer.read1(1 << 16):
    size += len(piece)
    total.update(piece)
print(f"Content-Type: text/plain\n\n{size} {total.hexdigest()}")
