'''What it says.'''
import sys
x: int = 1
names = sorted(globals())
print("Content-Type: text/plain\n")
print(names, __doc__, __annotations__, __builtins__, __spec__, __package__, __loader__.__class__, __loader__.path)
print(sys.modules["__main__"].__dict__ is globals(), sys.modules["__main__"])
import pickle
class Thing: pass
print(pickle.loads(pickle.dumps(Thing())).__class__ is Thing, Thing.__module__)
import inspect
print(inspect.getsource(Thing))
exec("print(x)")
