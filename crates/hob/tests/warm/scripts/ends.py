import os, sys, types
print("Content-Type: text/plain\n")
class Ends:
    def __del__(self):
        print("gone")
which = os.environ["QUERY_STRING"].partition("which=")[2].partition("&")[0]
if which == "public":
    kept = Ends()
if which == "private":
    _kept = Ends()
if which == "listed":
    kept = [{"in": Ends()}]
if which == "default":
    def function(default=Ends()):
        return default
if which == "orphan":
    kept = types.ModuleType("orphan")
    kept.held = Ends()
    del kept
if which == "held-orphan":
    kept = types.ModuleType("orphan")
    kept.held = Ends()
if which == "loaded":
    sys.modules["loaded"] = types.ModuleType("loaded")
    sys.modules["loaded"].held = Ends()
if which == "loader":
    __loader__ = Ends()
if which == "stream":
    sys.stdin = Ends()
if which == "nothing":
    kept, others, number, text = [], {}, 1, "text"
print("body")
