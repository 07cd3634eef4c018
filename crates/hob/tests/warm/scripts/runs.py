import subprocess, os
print("Content-Type: text/plain\n", flush=True)
print(subprocess.run(["cat"], input=b"through", capture_output=True).stdout)
print(os.system("exit 3") >> 8, os.popen("echo $0 $SCRIPT_NAME").read())
print(subprocess.run("exit 5", shell=True).returncode)
