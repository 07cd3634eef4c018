#!/usr/bin/env python3
"""How much water so many cups take. An ordinary CGI script: nothing in it knows of `warm`."""
import html
import os
from urllib.parse import parse_qs

ML_PER_CUP = 250

asked = parse_qs(os.environ.get("QUERY_STRING", "")).get("cups", ["1"])[0]
print("Content-Type: text/html; charset=utf-8\n")
if asked.isascii() and asked.isdigit() and len(asked) < 4:
    print(f"<p>{asked} cups take {int(asked) * ML_PER_CUP} ml of water.")
else:
    print(f"<p>{html.escape(asked)} is no number of cups.")
