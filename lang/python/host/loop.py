"""What a kept Python is started with, as standard input: it has `warm.py` as `TEXT`, `links.py` as
`LINKS`, and is the loop without the native part.

Who leaves the loop is a child, which becomes what `python3 SCRIPT` would be. The script runs from
here too, so that nothing of ours is between it and the top.
"""

# What is not defined here is in `warm.py`.
# ruff: noqa: F821

def compile_elsewhere(text):
    """Compiles in a process of its own: what that takes would stay, and be a part of each fork."""
    import marshal
    import os

    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            left = memoryview(marshal.dumps(compile(text, "<hob>", "exec", dont_inherit=True)))
            while left:
                left = left[os.write(writing, left) :]
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with open(reading, "rb") as opened:
        compiled = opened.read()
    os.waitpid(process, 0)
    return marshal.loads(compiled)


exec(compile_elsewhere(globals().pop("TEXT")))
if NATIVE is not None:
    NATIVE.serve(*given_to_native())
tell(
    HOST.first,
    HEAD.pack(VERSION, READY, 0, 0, 0) + b"python " + sys.version.split()[0].encode(),
)

while True:
    RUN_HERE = HOST.next_run()
    # What is there belongs to nobody's garbage.
    gc.freeze()
    COUNT = gc.get_count()
    try:
        PROCESS = os.fork()
    except OSError as error:
        HOST.note_failed(RUN_HERE, FORK, error)
        continue
    if PROCESS == 0:
        break
    HOST.note_started(PROCESS, RUN_HERE)
become(*RUN_HERE)
if HOST.has_file:
    open_stdin()
seed()
try:
    CODE = code_of(RUN_HERE[3])
except BaseException as error:
    error.__traceback__ = None
    leave(report(error))
try:
    exec(CODE, NAMES)
except BaseException as error:
    # Without this frame.
    error.__traceback__ = error.__traceback__.tb_next
    flush_first()
    leave(report(error))
flush_first()
leave(0)
