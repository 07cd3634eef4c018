import os
kept = open("written", "w")
kept.write("text that nobody flushed")
ring = [open("written-ring", "w")]
ring.append(ring)
ring[0].write("in a ring")
def last():
    print(sorted(os.listdir(".")) != [])
import atexit
atexit.register(last)
