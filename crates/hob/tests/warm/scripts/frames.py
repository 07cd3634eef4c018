import sys, traceback
print("Content-Type: text/plain\n")
def inner():
    raise KeyError("k")
try:
    inner()
except KeyError:
    print(traceback.format_exc())
print(sys._getframe().f_code.co_name, sys._getframe().f_code.co_filename, sys._getframe().f_lineno)
import warnings
warnings.warn("careful")
warnings.warn("old", DeprecationWarning)
