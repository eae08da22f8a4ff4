# dbench.sh DIRECTORY LOCAL SECONDS: four clients of dbench. An operation with a wrong result ends
# dbench with a failure.
set -eu
dbench -t "$3" -c /usr/share/dbench/client.txt -D "$1" 4 > "$2/dbench.out" 2>&1 || {
    tail -30 "$2/dbench.out"
    exit 1
}
grep Throughput "$2/dbench.out"
