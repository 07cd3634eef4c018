#!/usr/bin/env python3
"""Control groups of version 2, tried in a virtual machine.

Many machines have a v2 tree without controllers (containers, hosts that still mount v1). This boots a
kernel that has them, with nothing but hob, its tests and a few tools in memory, and runs

- the spawner's tests of control groups, at the top of the tree;
- `hob serve` as a service runs: in a group of its own that was delegated to it, with `memory`,
  `pids` and `cpu_weight` set, asked by a client in the machine.

It needs qemu-system-x86, cpio, bash, curl and a kernel image with cgroup v2, initramfs and a serial
console built in (Debian's are). The machine's processor is emulated, for that works everywhere.
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOOLS = """bash cat chmod curl cut cp env find grep head id ip ls mkdir mount prlimit ps rm setsid sh
sleep sort tail wc""".split()

INIT = r"""#!/bin/bash
export PATH=/bin HOME=/tmp RUST_BACKTRACE=0
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp; chmod 1777 /tmp
ip link set lo up; mkdir -p /run
mount -t cgroup2 none /sys/fs/cgroup
echo "kernel $(cut -d ' ' -f 3 /proc/version), controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"

said() { if [ "$1" = 0 ]; then echo "PASSED $2"; else echo "FAILED $2"; fi; }

# Beside tests that start what they started, nothing else is in the way.
/hob-tests process::spawner::tests::groups --nocapture --test-threads=1 2>&1
said $? 'tests of control groups'

cd /site
group=/sys/fs/cgroup/hob.service
echo '+memory +pids +cpu' > /sys/fs/cgroup/cgroup.subtree_control
mkdir $group
( echo 0 > $group/cgroup.procs; exec /bin/hob serve --config /site/hob.toml ) > /tmp/out 2>&1 &
for i in {1..200}; do grep -q 'listening on' /tmp/out && break; sleep 0.1; done
cat /tmp/out
ask() { curl -s --max-time 60 "http://127.0.0.1:8080/$1"; }
status() { curl -s --max-time 60 -o /dev/null -w '%{http_code}' "http://127.0.0.1:8080/$1"; }
own=$(ask groups | cut -d : -f 3)
echo "a program is in $own"
limits=$(cd "/sys/fs/cgroup${own%/*}" && head -n 1 memory.max pids.max cpu.weight)
echo "$limits"
[ "$(echo "$limits" | grep -cE '^(33554432|20|37)$')" = 3 ]; said $? 'the limits are in the group'
[ "$(grep -c . $group/cgroup.procs)" = 0 ]; said $? 'the group of the service has no process itself'
[ "$(ask hog)" != 94371840 ]; said $? 'a program that takes more memory than it may is ended'
grep oom_kill "/sys/fs/cgroup${own%/*}/memory.events"
grep -qE 'oom_kill [1-9]' "/sys/fs/cgroup${own%/*}/memory.events"; said $? 'and the kernel counted it'
program="/sys/fs/cgroup${own%/*}"
status bomb > /tmp/bomb &
bomb=$!
for i in {1..150}; do grep -q 'max [1-9]' $program/pids.events && break; sleep 0.1; done
most=$(cat $program/pids.current)
grep -q 'max [1-9]' $program/pids.events && [ $most -le 20 ]; said $? "a fork bomb stops: $most of 20"
wait $bomb
[ "$(cat /tmp/bomb)" = 504 ]; said $? "when its time is over it is answered: $(cat /tmp/bomb)"
for i in {1..100}; do [ "$(cat $program/pids.current)" = 0 ] && break; sleep 0.1; done
for pid in $(cat $program/*/cgroup.procs); do grep -E '^(Name|State|PPid|Sig)' /proc/$pid/status; done
[ "$(cat $program/pids.current)" = 0 ]; said $? 'and nothing of it is left'
[ "$(status groups)" = 200 ]; said $? 'the next request is answered'
kill %1; wait %1; said $? 'the server ends'
[ -z "$(find $group -name 'hob-[0-9]*')" ]; said $? 'no group of a program is left'
grep -E 'WARN|ERROR' /tmp/out
echo OVER
echo o > /proc/sysrq-trigger
sleep 60
"""

CONFIG = """
user = "nobody"

[[listen]]
address = "127.0.0.1:8080"

[program.cgroup]
memory = "32MiB"
pids = 20
cpu_weight = 37

[[site]]

[[site.route]]
path = "/*"
cgi = { dir = "cgi", total = "20s", grace = "1s" }
"""

PROGRAMS = {
    "groups": "echo 'Content-Type: text/plain'; echo; cat /proc/self/cgroup",
    "hog": "echo 'Content-Type: text/plain'; echo; head -c 100m /dev/zero | tail -c 90m | wc -c",
    "bomb": "while :; do setsid sleep 1000 & done 2>/dev/null",
}


def libraries(program):
    """The files a program is linked with."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", listed)


def add(root, source, target):
    """Copies a program into the initial file system, with what it is linked with."""
    for path, into in [(source, target)] + [(path, path) for path in libraries(source)]:
        place = os.path.join(root, into.lstrip("/"))
        if not os.path.exists(place):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy(os.path.realpath(path), place)
            os.chmod(place, 0o755)


def fill(root, hob, tests):
    """The initial file system."""
    for folder in ["proc", "sys", "dev", "tmp", "etc", "bin", "site/cgi"]:
        os.makedirs(os.path.join(root, folder))
    for tool in TOOLS:
        found = shutil.which(tool)
        if not found:
            sys.exit(f"there is no {tool} on this machine")
        add(root, found, f"/bin/{tool}")
    add(root, hob, "/bin/hob")
    add(root, tests, "/hob-tests")
    os.makedirs(os.path.join(root, "usr"), exist_ok=True)
    if not os.path.exists(os.path.join(root, "usr/bin")):
        os.symlink("../bin", os.path.join(root, "usr/bin"))

    def write(path, text, mode=0o644):
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(os.path.join(root, path), mode)

    write("init", INIT, 0o755)
    write("etc/passwd", "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
          "www-data:x:33:33::/:/bin/sh\n")
    write("etc/group", "root:x:0:\nnogroup:x:65534:\nwww-data:x:33:\n")
    write("site/hob.toml", CONFIG)
    for name, text in PROGRAMS.items():
        write(f"site/cgi/{name}", f"#!/bin/bash\n{text}\n", 0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default=max(glob.glob("/boot/vmlinuz-*"), default=None),
                        help="the newest of /boot, if not given")
    parser.add_argument("--hob", default="target/debug/hob")
    parser.add_argument("--tests", required=True,
                        help="what `cargo test -p hob-server --lib --no-run` says it made")
    parser.add_argument("--kvm", action="store_true", help="faster, where it works")
    parser.add_argument("--limit", type=int, default=900, help="seconds")
    asked = parser.parse_args()
    if not asked.kernel:
        sys.exit("there is no kernel in /boot; name one with --kernel")
    with tempfile.TemporaryDirectory() as scratch:
        root, image = os.path.join(scratch, "root"), os.path.join(scratch, "initrd")
        fill(root, asked.hob, asked.tests)
        subprocess.run(f"cd {root} && find . | cpio -o -H newc --quiet | gzip -1 > {image}",
                       shell=True, check=True)
        command = ["qemu-system-x86_64", "-m", "1024", "-smp", "2", "-nographic", "-no-reboot",
                   "-nodefaults", "-serial", "stdio", "-kernel", asked.kernel, "-initrd", image,
                   "-append", "console=ttyS0 quiet panic=-1 rdinit=/init"]
        command += ["-enable-kvm", "-cpu", "host"] if asked.kvm else ["-cpu", "max"]
        try:
            ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 timeout=asked.limit)
            text = ran.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode(errors="replace") + "\nFAILED: it took too long"
    # What comes before is the firmware's, with sequences that clear a terminal.
    print(text[max(text.find("kernel "), 0):])
    passed, failed = text.count("PASSED "), text.count("FAILED ") + text.count("FAILED:")
    failed += int("\nOVER" not in text)
    print(f"{passed} passed, {failed} failed")
    sys.exit(int(failed > 0))


if __name__ == "__main__":
    main()
