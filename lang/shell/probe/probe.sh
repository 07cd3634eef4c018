#!/bin/sh
# Answers the shared cases (lang/probe) over the line protocol, and as plain CGI.
. "${0%/*}/hob.sh"

LC_ALL=C
export LC_ALL
text='Content-Type: text/plain'
octets='Content-Type: application/octet-stream'

# Bytes of the pattern: from where, how many.
pattern() {
    yes 0123456789abcdef | tr -d '\n' | tail -c +$(($1 % 16 + 1)) | head -c "$2"
}

# Fields, an empty line.
fields() {
    printf '%s\n' "$@" ''
}

# The variables that the client names, separated by commas.
environ() {
    names=$HTTP_X_SHOW,
    while [ -n "$names" ]; do
        name=${names%%,*}
        names=${names#*,}
        case $name in
        '' | *[!A-Z0-9_]*) continue ;;
        esac
        if eval "[ -n \"\${$name+set}\" ]"; then
            eval "printf '%s\n' \"$name=\$$name\""
        else
            printf '%s is not set\n' "$name"
        fi
    done
}

stream() {
    at=0
    while [ "$at" -lt "$1" ]; do
        left=$(($1 - at))
        pattern "$at" "$((left < $2 ? left : $2))"
        at=$((at + $2))
    done
}

slow() {
    line=0
    while [ "$line" -lt "$1" ]; do
        line=$((line + 1))
        printf 'line %s\n' "$line"
    done
}

fail() {
    [ "$1" = before ] || { fields "$text" && printf some; }
    exit 1
}

callout() {
    case $1 in
    noop) hob_callout NOOP: ;;
    unknown) hob_callout 'SING: la' ;;
    timeout) hob_callout 'TIMEOUT: 30' ;;
    map) hob_callout 'MAP-PATH: /' ;;
    log)
        hob_tell 'LOG: info probe'
        hob_tell 'TRACE: probe'
        hob_reply=logged
        ;;
    esac
    fields "$text"
    printf '%s\n' "${hob_reply%% *}"
}

# A page, and what follows it in the path.
answer() {
    case $1 in
    hello) fields 'Content-Length: 12' "$text" && echo 'Hello world' ;;
    empty) fields "$text" ;;
    environ) fields "$text" && environ ;;
    echo) fields "Content-Type: ${CONTENT_TYPE:-text/plain}" && hob_body ;;
    count) fields "$text" && echo $(($(hob_body | wc -c))) ;;
    ignore) fields "$text" && echo ignored ;;
    status)
        case $2 in
        204 | 304) fields "Status: $2" ;;
        *) fields "Status: $2" "$text" && echo "status $2" ;;
        esac
        ;;
    redirect) fields 'Status: 302' 'Location: https://example.invalid/there' ;;
    fields)
        fields 'Set-Cookie: a=1; Path=/' 'Set-Cookie: b=2; HttpOnly' 'X-Empty:' \
            "X-Long: $(printf '%4000s' '' | tr ' ' l)" 'X-Bytes: äöü' "$text"
        echo fields
        ;;
    type) fields 'Content-Type: image/svg+xml' && printf '<svg/>' ;;
    size) fields "$octets" "Content-Length: $2" && pattern 0 "$2" ;;
    stream) fields "$octets" && stream "$2" "$3" ;;
    slow) fields "$text" && slow "$2" ;;
    fail) fail "$2" ;;
    callout) callout "$2" ;;
    *) fields 'Status: 404' "$text" && echo 'no such case' ;;
    esac
}

while hob_accept; do
    path=${PATH_INFO#/}
    set -f
    IFS=/
    # shellcheck disable=SC2086
    set -- $path
    unset IFS
    answer "$@"
    hob_finish
done
