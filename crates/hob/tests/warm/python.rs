//! Python scripts.

use crate::compare::{Case, compare};

const KEYS: &str = "interpreter = \"python3\", preload = [\"json\", \"random\", \"threading\"]";

#[test]
fn script_sees_what_it_would_see_if_it_was_started() {
    compare(
        &[
            Case::new("env.py", ENVIRONMENT).at("/path%20info/x?a+b"),
            Case::new("words.py", ENVIRONMENT).at("/?one+two%20words"),
            Case::new("around.py", AROUND),
            Case::new("streams.py", STREAMS).posts(b"some text\n"),
            Case::new("process.py", PROCESS),
            Case::new("names.py", NAMES),
            Case::new("frames.py", FRAMES),
        ],
        KEYS,
    );
}

#[test]
fn script_ends_as_it_would_if_it_was_started() {
    let head = |rest: &'static str| -> &'static str {
        let text = format!("print('Content-Type: text/plain\\n')\n{rest}");
        Box::leak(text.into_boxed_str())
    };
    compare(
        &[
            Case::new("falls.py", head("print('end')\n")),
            Case::new("exit0.py", head("import sys\nprint(1)\nsys.exit(0)\n")),
            Case::new("exit3.py", head("import sys\nprint(1)\nsys.exit(3)\n")),
            Case::new("exit-1.py", head("import sys\nsys.exit(-1)\n")),
            Case::new("exit-text.py", "import sys\nsys.exit('a reason')\n"),
            Case::new("exit-none.py", head("raise SystemExit\n")),
            Case::new("exit-odd.py", "raise SystemExit(1, 'x')\n"),
            Case::new(
                "quit.py",
                head("import os\nprint('x', flush=True)\nos._exit(4)\n"),
            ),
            Case::new("raises.py", RAISES),
            Case::new(
                "raises-late.py",
                head("print(1)\nraise ValueError('late')\n"),
            ),
            Case::new("chained.py", CHAINED),
            Case::new("syntax.py", "print('x'\nif\n"),
            Case::new("null.py", "print('\0')\n"),
            Case::new(
                "coding.py",
                "# coding: latin-1\nprint('Content-Type: text/plain\\n\\n' + ascii('\u{e9}'))\n",
            ),
            Case::new("warns.py", head("print(1 is 1)\n")),
            Case::new(
                "killed.py",
                head("import os\nprint(1, flush=True)\nos.kill(os.getpid(), 9)\n"),
            ),
            Case::new(
                "interrupt.py",
                head("print(1, flush=True)\nraise KeyboardInterrupt\n"),
            ),
            Case::new(
                "hook.py",
                "import sys\nsys.excepthook = lambda *a: print('Status: 500 Hooked\\n\\nhooked', a[0].__name__)\n1/0\n",
            ),
            Case::new(
                "atexit.py",
                head(
                    "import atexit\natexit.register(print, 'last')\natexit.register(print, 'first')\nprint('body')\n",
                ),
            ),
            Case::new(
                "atexit-raises.py",
                head(
                    "import atexit\nclass Last:\n    def __call__(self): 1/0\n    def __repr__(self): return 'Last'\natexit.register(Last())\n",
                ),
            ),
            Case::new("finalizes.py", head(FINALIZES)),
            Case::new("unflushed.py", head(UNFLUSHED)),
            Case::new(
                "closed.py",
                head("import sys\nsys.stdout.flush()\nsys.stdout.close()\n"),
            ),
            Case::new("nothing.py", ""),
            Case::new("no-head.py", "print('just text')\n"),
            Case::new(
                "status.py",
                "print('Status: 404 Not Found\\nContent-Type: text/plain\\n\\nno')\n",
            ),
            Case::new(
                "elsewhere.py",
                "print('Location: http://other.example/\\n')\n",
            ),
        ],
        KEYS,
    );
}

#[test]
fn script_may_do_with_processes_and_threads_what_it_likes() {
    compare(
        &[
            Case::new("forks.py", FORKS),
            Case::new("executes.py", EXECUTES),
            Case::new("runs.py", RUNS),
            Case::new("threads.py", THREADS),
            Case::new("daemon-thread.py", DAEMON_THREAD),
            Case::new("alarm.py", ALARM),
            Case::new("pool.py", POOL),
        ],
        KEYS,
    );
}

#[test]
fn body_of_any_size_goes_both_ways() {
    let body: &'static [u8] = Box::leak(vec![b'x'; 3_000_000].into_boxed_slice());
    compare(
        &[
            Case::new("echo.py", ECHO).posts(body),
            Case::new("large.py", LARGE),
            Case::new(
                "unread.py",
                "print('Content-Type: text/plain\\n\\nunread')\n",
            )
            .posts(body),
        ],
        KEYS,
    );
}

#[test]
fn file_that_is_not_python_runs_as_the_kernel_runs_it() {
    compare(
        &[
            Case::new("shell.cgi", "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\necho \"$0 $1 $REQUEST_METHOD\"\nenv | grep -c .\ngrep SigIgn /proc/self/status\nls /proc/$$/fd\n").at("?word"),
            Case::new("perl.cgi", "#!/usr/bin/perl\nprint \"Content-Type: text/plain\\n\\n$0 @ARGV\\n\"; exit 3;\n"),
            Case::new("isolated.cgi", "#!/usr/bin/python3 -I\nimport sys\nprint('Content-Type: text/plain\\n')\nprint(sys.flags, sys.argv, sys.path)\n"),
            Case::new("by-name.cgi", "#!/usr/bin/env python3\nimport sys\nprint('Content-Type: text/plain\\n')\nprint(sys.flags, sys.argv, sys.path)\n"),
            Case::new("no-interpreter.cgi", "#!/no/such/program\n"),
        ],
        KEYS,
    );
}

const ENVIRONMENT: &str = r#"
import os, sys
print("Content-Type: text/plain\n")
ONCE = {"UNIQUE_ID", "REMOTE_PORT", "REQUEST_TIME", "REQUEST_TIME_FLOAT", "LC_CTYPE"}
for name in sorted(os.environ):
    if name not in ONCE:
        print(name, repr(os.environ[name]), os.getenv(name) == os.environ[name])
print(len(os.environ), sorted(os.environ) == sorted(os.environb_keys() if hasattr(os, "environb_keys") else os.environ))
print(sys.argv)
given = dict(item.split(b"=", 1) for item in open("/proc/self/environ", "rb").read().split(b"\0") if item)
print(sorted(os.popen("env").read().splitlines()) == sorted("%s=%s" % pair for pair in os.environ.items()))
"#;

const AROUND: &str = r#"
import gc, os, resource, signal, sys, threading
print("Content-Type: text/plain\n")
print(os.getcwd(), __file__, __name__, sys.path, sys.argv)
print(os.getpgrp() == os.getpid(), os.umask(0), os.nice(0), os.getuid(), os.getgid(), os.getgroups())
print(sorted(os.listdir("/proc/self/fd")))
status = open("/proc/self/status").read().splitlines()
print([line for line in status if line.startswith(("SigBlk", "SigIgn", "SigCgt", "Threads", "NoNewPrivs", "Uid", "Gid"))])
OURS = {"RLIMIT_RTTIME"}
print([(name, resource.getrlimit(getattr(resource, name))) for name in sorted(dir(resource)) if name.startswith("RLIMIT_") and name not in OURS])
print(threading.current_thread().name, threading.active_count(), threading.main_thread() is threading.current_thread())
print(gc.isenabled(), gc.get_threshold(), gc.get_debug())
print(sys.flags, sys.executable, sys.orig_argv if hasattr(sys, "orig_argv") else "")
print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.warnoptions, sys._xoptions)
print([(number, str(signal.getsignal(number))) for number in (1, 2, 13, 15, 17, 25)], signal.set_wakeup_fd(-1))
print(os.times().user < 30, os.path.samefile("/proc/self/exe", sys.executable))
"#;

const STREAMS: &str = r#"
import os, sys
print("Content-Type: text/plain\n")
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream.name, stream.mode, stream.encoding, stream.errors, stream.newlines, stream.line_buffering, stream.write_through)
    print(stream.fileno(), stream.isatty(), stream.seekable(), type(stream.buffer), stream.buffer.raw)
print(sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__)
print(repr(sys.stdin.readline()), repr(sys.stdin.read()))
print("to the log", file=sys.stderr)
"#;

const PROCESS: &str = r#"
import os
print("Content-Type: text/plain\n")
print(os.getsid(0) == os.getsid(os.getppid()), os.getpgid(0) == os.getpid())
print(open("/proc/self/oom_score_adj").read(), open("/proc/self/coredump_filter").read())
print(os.sched_getaffinity(0), os.isatty(0))
"#;

const NAMES: &str = r#"
'''What it says.'''
import sys
x: int = 1
names = sorted(globals())
print("Content-Type: text/plain\n")
print(names, __doc__, __annotations__, __builtins__, __spec__, __package__, __loader__.__class__, __loader__.path)
print(sys.modules["__main__"].__dict__ is globals(), sys.modules["__main__"])
import pickle
class Thing: pass
print(pickle.loads(pickle.dumps(Thing())).__class__ is Thing, Thing.__module__)
import inspect
print(inspect.getsource(Thing))
exec("print(x)")
"#;

const FRAMES: &str = r#"
import sys, traceback
print("Content-Type: text/plain\n")
def inner():
    raise KeyError("k")
try:
    inner()
except KeyError:
    print(traceback.format_exc())
print(sys._getframe().f_code.co_name, sys._getframe().f_code.co_filename, sys._getframe().f_lineno)
import warnings
warnings.warn("careful")
warnings.warn("old", DeprecationWarning)
"#;

const RAISES: &str = r#"
import os
def inner(value):
    return 1 / value
inner(0)
"#;

const CHAINED: &str = r#"
try:
    {}["x"]
except KeyError as error:
    raise RuntimeError("two") from error
"#;

const FINALIZES: &str = r#"
class Thing:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("gone", self.name)
kept = Thing("global")
ring = Thing("ring")
ring.ring = ring
del ring
print("body")
"#;

const UNFLUSHED: &str = r#"
import os
kept = open("written", "w")
kept.write("text that nobody flushed")
ring = [open("written-ring", "w")]
ring.append(ring)
ring[0].write("in a ring")
def last():
    print(sorted(os.listdir(".")) != [])
import atexit
atexit.register(last)
"#;

const FORKS: &str = r#"
import os, sys
print("Content-Type: text/plain\n", flush=True)
child = os.fork()
if child == 0:
    print("child", os.getppid() != 1, flush=True)
    sys.exit(7)
pid, status = os.waitpid(child, 0)
print("parent", pid == child, os.WEXITSTATUS(status))
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("no other child")
"#;

const EXECUTES: &str = r#"
import os
os.execvp("sh", ["sh", "-c", "printf 'Content-Type: text/plain\n\n'; echo $REQUEST_METHOD; grep Sig[BC] /proc/self/status; ls /proc/$$/fd"])
"#;

const RUNS: &str = r#"
import subprocess, os
print("Content-Type: text/plain\n", flush=True)
print(subprocess.run(["cat"], input=b"through", capture_output=True).stdout)
print(os.system("exit 3") >> 8, os.popen("echo $0 $SCRIPT_NAME").read())
print(subprocess.run("exit 5", shell=True).returncode)
"#;

const THREADS: &str = r#"
import threading, time
print("Content-Type: text/plain\n", flush=True)
for number in range(3):
    thread = threading.Thread(target=print, args=("thread", number))
    thread.start()
    thread.join()
def finish():
    threading.main_thread().join()
    print("main is over", not threading.main_thread().is_alive())
threading.Thread(target=finish).start()
print("main")
"#;

const DAEMON_THREAD: &str = r#"
import threading
print("Content-Type: text/plain\n", flush=True)
threading.Thread(target=threading.Event().wait, daemon=True).start()
print("main")
"#;

const ALARM: &str = r#"
import signal
print("Content-Type: text/plain\n", flush=True)
signal.signal(signal.SIGALRM, lambda *a: print("rang"))
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()
"#;

const POOL: &str = r#"
import multiprocessing
def double(x):
    return 2 * x
if __name__ == "__main__":
    print("Content-Type: text/plain\n", flush=True)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(double, range(5)))
"#;

const ECHO: &str = r#"
import hashlib, os, sys
body = sys.stdin.buffer.read()
sys.stdout.write("Content-Type: application/octet-stream\n\n")
sys.stdout.flush()
sys.stdout.buffer.write(body)
print(len(body), os.environ["CONTENT_LENGTH"])
"#;

const LARGE: &str = r#"
import sys
sys.stdout.write("Content-Type: text/plain\n\n")
for number in range(200000):
    print(number)
"#;
