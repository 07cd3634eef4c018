import signal
print("Content-Type: text/plain\n", flush=True)
signal.signal(signal.SIGALRM, lambda *a: print("rang"))
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()
