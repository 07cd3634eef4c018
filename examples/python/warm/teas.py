#!/usr/bin/env python3
"""A table out of a database, as an ordinary CGI script: nothing in it knows of `warm`."""

import html
import os
import sqlite3
from urllib.parse import parse_qs

TEAS = [("assam", 4), ("oolong", 3), ("sencha", 2)]

database = sqlite3.connect(":memory:")
database.execute("create table teas (name text, minutes integer)")
database.executemany("insert into teas values (?, ?)", TEAS)

least = parse_qs(os.environ.get("QUERY_STRING", "")).get("least", ["0"])[0]
found = database.execute(
    "select name, minutes from teas where minutes >= cast(? as integer) order by name", (least,)
)
print("Content-Type: text/html; charset=utf-8\n")
print("<!doctype html>\n<title>Teas</title>\n<table>")
for name, minutes in found:
    print(f"<tr><td>{html.escape(name)}<td>{minutes} minutes")
print("</table>")
