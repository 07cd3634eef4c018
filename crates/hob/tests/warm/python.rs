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
        // More than a pipe holds: its answer has begun when the script goes on.
        let rest = rest.replace("MUCH", "'x' * 200_000");
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
                head("print(MUCH, flush=True)\nraise ValueError('late')\n"),
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
                head("import os\nprint(MUCH, flush=True)\nos.kill(os.getpid(), 9)\n"),
            ),
            Case::new(
                "interrupt.py",
                head("print(MUCH, flush=True)\nraise KeyboardInterrupt\n"),
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
            Case::new("replaced.py", REPLACED),
            Case::new(
                "full.py",
                head(
                    "import sys\nprint(MUCH, flush=True)\nsys.stdout = open('/dev/full', 'w')\nprint('lost')\n",
                ),
            ),
            Case::new(
                "no-streams.py",
                head("import sys\nprint('x', flush=True)\nsys.stdout = sys.stderr = None\n"),
            ),
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
fn objects_that_a_script_leaves_end_as_they_would_if_it_was_started() {
    let whiches = [
        "nothing",
        "public",
        "private",
        "listed",
        "default",
        "orphan",
        "held-orphan",
        "loaded",
        "loader",
        "stream",
    ];
    let cases: Vec<Case> = whiches
        .into_iter()
        .map(|which| {
            let name: &'static str = Box::leak(format!("ends-{which}.py").into_boxed_str());
            let rest: &'static str = Box::leak(format!("?which={which}").into_boxed_str());
            Case::new(name, ENDS).at(rest)
        })
        .collect();
    compare(&cases, "interpreter = \"python3\"");
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

const ENVIRONMENT: &str = include_str!("scripts/environment.py");
const AROUND: &str = include_str!("scripts/around.py");
const STREAMS: &str = include_str!("scripts/streams.py");
const PROCESS: &str = include_str!("scripts/process.py");
const NAMES: &str = include_str!("scripts/names.py");
const FRAMES: &str = include_str!("scripts/frames.py");
const RAISES: &str = include_str!("scripts/raises.py");
const CHAINED: &str = include_str!("scripts/chained.py");
const FINALIZES: &str = include_str!("scripts/finalizes.py");
const UNFLUSHED: &str = include_str!("scripts/unflushed.py");
const ENDS: &str = include_str!("scripts/ends.py");
const REPLACED: &str = include_str!("scripts/replaced.py");
const FORKS: &str = include_str!("scripts/forks.py");
const EXECUTES: &str = include_str!("scripts/executes.py");
const RUNS: &str = include_str!("scripts/runs.py");
const THREADS: &str = include_str!("scripts/threads.py");
const DAEMON_THREAD: &str = include_str!("scripts/daemon-thread.py");
const ALARM: &str = include_str!("scripts/alarm.py");
const POOL: &str = include_str!("scripts/pool.py");
const ECHO: &str = include_str!("scripts/echo.py");
const LARGE: &str = include_str!("scripts/large.py");
