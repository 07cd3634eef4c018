import threading
print("Content-Type: text/plain\n", flush=True)
threading.Thread(target=threading.Event().wait, daemon=True).start()
print("main")
