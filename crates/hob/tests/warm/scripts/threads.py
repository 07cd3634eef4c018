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
