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
