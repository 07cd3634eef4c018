"""`python -m hob wsgi module:application`."""

import sys

from .host import main

main(sys.argv)
