class Thing:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("gone", self.name)
kept = Thing("global")
ring = Thing("ring")
ring.ring = ring
del ring
print("body")
