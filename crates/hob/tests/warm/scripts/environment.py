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
