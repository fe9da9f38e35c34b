#!/bin/sh
# The core as an ordinary program: what it does in a directory, what it reports, how it exits.
# Usage: native.sh CORE
core=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

# stream NAME OPS: OPS is a format for printf
stream() {
    # shellcheck disable=SC2059
    printf "FSEXPOPS\\002\\000\\000\\000$2" > "$folder/$1"
}
# expect NAME STATUS PATTERN...: run the stream, check the exit status and that the records match
expect() {
    name=$1 wanted=$2
    shift 2
    mkdir -p "$folder/in"
    "$core" native "$folder/in" "$folder/$name" "$folder/records" 2> "$folder/errors"
    got=$?
    if [ $got -ne "$wanted" ]; then
        echo "native: $name exits with $got and not $wanted"
        failed=1
    fi
    for pattern; do
        if ! grep -q -- "$pattern" "$folder/records"; then
            echo "native: the records of $name have no $pattern"
            failed=1
        fi
    done
    rm -rf "$folder/in"
}

stream good '\020\001d\000\355\003\024\001d\000\001\001c\000\021\001x\000\244\003\021\001y\000\244\003\002\025\022\001x\000\003'
expect good 0 '"seq":0,"type":"hello"' '"seq":1,"type":"space","phase":""' \
    '"seq":2,"type":"phase","name":"c","elapsed_ns":[0-9]*,"operations":2,"bytes":0,"errors":0,' \
    '"seq":3,"type":"operations","phase":"c","operation":"create","count":2,"bytes":0,"errors":0,' \
    '"seq":4,"type":"space","phase":"c"' '"seq":5,"type":"end","status":"ok","records":6,'
stream missing '\001\001c\000\025\022\004gone\000\002\003'
expect missing 1 '"step":"ops","operation":"unlink","path":"gone","errno":2,"error":"ENOENT","index":2,"phase":"c",' \
    '"status":"failed","records":4,'
stream cut '\001\001c\000'
expect cut 1 '"operation":"check".*"errno":0,"error":"","index":1,"phase":"","message":"the stream has no end'
expect absent 1 '"operation":"open".*"ENOENT"'
stream repeat '\177\006repeat\000\003'
expect repeat 0 '"type":"end"'
[ "$(grep -c '"seq":1,' "$folder/records")" = 2 ] || { echo 'native: repeat does not'; failed=1; }
stream garble '\177\006garble\000\003'
expect garble 0 '"pha{"seq":2'
stream skip '\177\004skip\000\003'
expect skip 0 '"seq":3,"type":"end"'
stream exit '\177\004exit\000\003'
expect exit 0 '"seq":1,'
grep -q '"end"' "$folder/records" && { echo 'native: exit does not'; failed=1; }
stream crash '\177\005crash\000\003'
expect crash 134 '"seq":1,'
mkdir "$folder/in"
"$core" native "$folder/in" "$folder/good" /no/such/place 2> /dev/null
[ $? -eq 2 ] || { echo 'native: exits as if records could be written'; failed=1; }
"$core" 2> /dev/null
[ $? -eq 2 ] || { echo 'native: exits as if it had been asked something'; failed=1; }

echo "native: $failed failed"
exit $failed
