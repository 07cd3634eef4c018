import os
os.execvp("sh", ["sh", "-c", "printf 'Content-Type: text/plain\n\n'; echo $REQUEST_METHOD; grep Sig[BC] /proc/self/status; ls /proc/$$/fd"])
