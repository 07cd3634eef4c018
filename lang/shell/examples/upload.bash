#!/bin/bash
# A form with a file, in bash: resident = { run = ["./upload.bash"], carrier = "lines" }. The body is
# kept in a temporary file while it is looked at; the digest of each part is shown.
. "$(dirname "$0")/../hob.sh"

body=$(mktemp)
trap 'rm -f "$body"' EXIT

form='<!doctype html>
<title>Upload</title>
<form method="post" enctype="multipart/form-data">
<p><label>Name <input name="name"></label>
<p><label>File <input type="file" name="file"></label>
<p><button>Send</button>
</form>'

# Bytes of the body, from the first to the one before the second, counted from 0.
piece() { tail -c "+$(($1 + 1))" "$body" | head -c "$(($2 - $1))"; }

escape() {
    local text=${1//&/&amp;}
    text=${text//</&lt;}
    text=${text//>/&gt;}
    printf '%s' "${text//\"/&quot;}"
}

# What the form sent, a line for each part between two boundaries.
show_parts() {
    local boundary="--$1" from='' at head start name file
    while IFS=: read -r at _; do
        if [ -n "$from" ]; then
            head=$(piece "$from" "$at" | LC_ALL=C sed $'/^\r$/q' | head -c 4096 | tr -d '\0')
            start=$((from + $(printf '%s\n' "$head" | wc -c)))
            name='' file=''
            [[ $head =~ \ name=\"([^\"]*)\" ]] && name=${BASH_REMATCH[1]}
            [[ $head =~ filename=\"([^\"]*)\" ]] && file="$(escape "${BASH_REMATCH[1]}"), "
            printf '<li>%s: %s%d bytes, SHA-256 %.64s\n' "$(escape "$name")" "$file" \
                $((at - 2 - start)) "$(piece "$start" $((at - 2)) | sha256sum)"
        fi
        from=$((at + ${#boundary} + 2))
    done < <(LC_ALL=C grep -aobF -e "$boundary" "$body")
}

while hob_accept; do
    if [ "$REQUEST_METHOD" != POST ]; then
        printf 'Content-Type: text/html; charset=utf-8\n\n%s\n' "$form"
    elif [[ $CONTENT_TYPE =~ ^multipart/form-data\;.*boundary=\"?([^\"\;]+) ]]; then
        hob_body >"$body"
        printf 'Content-Type: text/html; charset=utf-8\n\n<!doctype html>\n<title>Received</title>\n<ul>\n'
        show_parts "${BASH_REMATCH[1]}"
        printf '</ul>\n'
    else
        hob_body >/dev/null
        printf 'Status: 415\nContent-Type: text/plain\n\nthis form is sent as multipart\n'
    fi
    hob_finish
done
