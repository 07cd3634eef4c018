# For scripts in sh that stay: reads one request after the other by the classic line protocol, with
# what every shell has. A script that no server keeps resident gets one request, as plain CGI.
#
#   . ./hob.sh
#   while hob_accept; do
#       printf 'Content-Type: text/plain\n\nHello, %s\n' "$REMOTE_ADDR"
#       hob_finish
#   done

hob_names=
hob_count=0

# Waits for a request, whose variables are then in the environment; false when there are no more.
hob_accept() {
    if [ -z "${CGIPLUSEOF-}" ]; then
        hob_count=$((hob_count + 1))
        [ "$hob_count" -eq 1 ]
        return
    fi
    [ "$hob_count" -gt 0 ] || exec 3<"$CGIPLUSIN"
    [ -z "$hob_names" ] || unset $hob_names
    hob_names=
    hob_line=
    while [ "$hob_line" != '!' ]; do
        IFS= read -r hob_line <&3 || return 1
    done
    while IFS= read -r hob_line <&3 && [ -n "$hob_line" ]; do
        export "$hob_line"
        hob_names="$hob_names ${hob_line%%=*}"
    done
    hob_count=$((hob_count + 1))
}

# Ends the answer.
hob_finish() {
    [ -z "${CGIPLUSEOF-}" ] || printf '%s\n' "$CGIPLUSEOF"
}

# The body of the request, to standard output.
hob_body() {
    [ "${CONTENT_LENGTH:-0}" -eq 0 ] || head -c "$CONTENT_LENGTH"
}

# Asks the server, `hob_callout 'MAP-PATH: /x'`; its reply, "200 text", is then in hob_reply.
hob_callout() {
    hob_reply='400 there is no server to ask'
    [ -n "${CGIPLUSESC-}" ] || return 0
    printf '%s\n%s\n%s\n' "$CGIPLUSESC" "$1" "$CGIPLUSEOT"
    IFS= read -r hob_reply <&3
}

# Tells the server something and waits for nothing, `hob_tell 'LOG: info text'`.
hob_tell() {
    [ -z "${CGIPLUSESC-}" ] || printf '%s\n!%s\n%s\n' "$CGIPLUSESC" "$1" "$CGIPLUSEOT"
}
