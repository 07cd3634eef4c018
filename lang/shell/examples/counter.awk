# Counts its requests, in awk and without hob.sh: the lines of requests are the lines that awk reads.
#
#   resident = { run = ["awk", "-f", "counter.awk", "/dev/fd/3"], carrier = "lines" }
#
# With mawk, which Debian calls awk, ["mawk", "-W", "interactive", "-f", ...]: else it waits until
# many requests are there.

BEGIN { count = 0; is_inside = 0 }

!is_inside && $0 == "!" { is_inside = 1; split("", variable); next }

is_inside && $0 == "" {
    is_inside = 0
    count++
    seen[variable["PATH_INFO"]]++
    printf "Content-Type: text/plain\n\nrequest %d, %d of %s\n", count,
        seen[variable["PATH_INFO"]], variable["PATH_INFO"]
    print ENVIRON["CGIPLUSEOF"]
    fflush()
    next
}

is_inside { at = index($0, "="); variable[substr($0, 1, at - 1)] = substr($0, at + 1) }
