import os, sys
print("Content-Type: text/plain\n")
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream.name, stream.mode, stream.encoding, stream.errors, stream.newlines, stream.line_buffering, stream.write_through)
    print(stream.fileno(), stream.isatty(), stream.seekable(), type(stream.buffer), stream.buffer.raw)
print(sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__)
print(repr(sys.stdin.readline()), repr(sys.stdin.read()))
print("to the log", file=sys.stderr)
