import hashlib, os, sys
body = sys.stdin.buffer.read()
sys.stdout.write("Content-Type: application/octet-stream\n\n")
sys.stdout.flush()
sys.stdout.buffer.write(body)
print(len(body), os.environ["CONTENT_LENGTH"])
