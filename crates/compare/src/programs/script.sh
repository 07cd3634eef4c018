#!/bin/sh
# CGI: a head and nothing behind it.
printf 'Content-Type: text/plain\r\n\r\n'
