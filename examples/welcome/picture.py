#!/usr/bin/env python3
"""Draws site/picture.png: a kettle by the fire at night. Standard library only; the same bytes every time."""

import math
import struct
import zlib
from pathlib import Path

WIDTH, HEIGHT, SAMPLES = 640, 400, 2


def mix(a, b, t):
    t = min(max(t, 0.0), 1.0)
    return tuple(x + (y - x) * t for x, y in zip(a, b))


def scene(x, y):
    """The colour at a point; x and y go from 0 to 1.6 and from 0 to 1."""
    colour = mix((24, 26, 46), (66, 40, 42), y)
    colour = mix(colour, (255, 150, 60), 0.75 * math.exp(-((x - 0.8) ** 2 * 5 + (y - 0.86) ** 2 * 9)))
    # A window with a moon.
    if 0.12 < x < 0.42 and 0.1 < y < 0.5:
        colour = mix((18, 30, 66), (40, 62, 110), y * 2)
        if math.hypot(x - 0.33, y - 0.2) < 0.05 and math.hypot(x - 0.315, y - 0.19) > 0.045:
            colour = (250, 244, 214)
        if abs(x - 0.27) < 0.006 or abs(y - 0.3) < 0.006:
            colour = (58, 38, 34)
    # Steam: three bands that grow fainter as they rise.
    for number in range(3):
        rise = (0.36 - y) / 0.3
        if 0 < rise < 1:
            middle = 1.1 + 0.03 * number + 0.03 * math.sin(9 * rise + 2 * number) + 0.05 * rise
            colour = mix(colour, (225, 228, 236), 0.35 * (1 - rise) * math.exp(-(((x - middle) / 0.012) ** 2)))
    # Flames.
    for middle, height in ((0.62, 0.12), (0.74, 0.17), (0.86, 0.18), (0.98, 0.12)):
        reach = (0.88 - y) / height
        if 0 < reach < 1:
            sway = middle + 0.012 * math.sin(12 * reach + 20 * middle)
            inside = 1 - abs(x - sway) / (0.05 * (1 - reach) ** 0.7)
            if inside > 0:
                colour = mix((240, 90, 24), (255, 220, 110), inside)
    # The kettle: handle, spout, body, lid, and the light on its side.
    ring = math.hypot((x - 0.8) / 0.19, (y - 0.42) / 0.2)
    if 0.9 < ring < 1.04 and y < 0.44:
        colour = (38, 42, 54)
    if 0.98 < x < 1.14 and abs((y - 0.62) + 1.35 * (x - 0.98)) < 0.05 + 0.25 * (1.14 - x):
        colour = mix((150, 74, 22), (196, 110, 40), (1.14 - x) * 5)
    body = math.hypot((x - 0.8) / 0.25, (y - 0.6) / 0.2)
    if body < 1 and y < 0.74:
        colour = mix((226, 132, 44), (120, 54, 18), ((x - 0.6) * 1.4 + (0.74 - y)) * 0.9)
        shine = math.hypot((x - 0.66) / 0.03, (y - 0.56) / 0.1)
        colour = mix(colour, (255, 226, 160), 0.7 * math.exp(-shine * shine))
    if math.hypot((x - 0.8) / 0.12, (y - 0.42) / 0.03) < 1:
        colour = (110, 52, 20)
    if math.hypot(x - 0.8, y - 0.385) < 0.022:
        colour = (38, 42, 54)
    # The hob itself.
    if 0.74 < y < 0.765 and 0.45 < x < 1.15:
        colour = (30, 30, 38)
    if y > 0.88:
        colour = mix((74, 46, 38), (40, 26, 26), (y - 0.88) * 8)
        if (x * 6 + (0.5 if y > 0.94 else 0)) % 1 < 0.03 or abs(y - 0.94) < 0.004:
            colour = (30, 20, 22)
    return colour


def row(line):
    pixels = bytearray([0])
    for column in range(WIDTH):
        total = [0.0, 0.0, 0.0]
        for sub in range(SAMPLES * SAMPLES):
            x = (column + (sub % SAMPLES + 0.5) / SAMPLES) / HEIGHT
            y = (line + (sub // SAMPLES + 0.5) / SAMPLES) / HEIGHT
            total = [a + b for a, b in zip(total, scene(x, y))]
        # One bit fewer: nobody sees it, and the file is much smaller.
        pixels += bytes(min(255, int(value / SAMPLES**2 + 1) & ~1) for value in total)
    return pixels


def up_filtered(lines):
    """PNG's filter 2: each byte less the one above it, which compresses better."""
    above = bytes(WIDTH * 3 + 1)
    for line in lines:
        yield bytes([2]) + bytes((a - b) & 255 for a, b in zip(line[1:], above[1:]))
        above = line


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main():
    lines = up_filtered(row(line) for line in range(HEIGHT))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    image = zlib.compress(b"".join(lines), 9)
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", image) + chunk(b"IEND", b"")
    Path(__file__).with_name("site").joinpath("picture.png").write_bytes(picture)


if __name__ == "__main__":
    main()
