# stress-ng.sh DIRECTORY LOCAL SECONDS: the stressors for file systems, in groups, with
# verification of the results.
set -eu
failed=''
seconds=$3
for group in \
    'access chmod chown dir dirdeep' \
    'dirmany fallocate fcntl filename flock' \
    'fpunch fstat hdd link lockf' \
    'metamix mmap readahead rename seek' \
    'symlink sync-file utime xattr touch'
do
    arguments=''
    for name in $group; do
        arguments="$arguments --$name 1"
    done
    # shellcheck disable=SC2086
    stress-ng --temp-path "$1" --timeout "${seconds}s" --verify --hdd-bytes 16m \
        --fallocate-bytes 16m --readahead-bytes 16m --seek-size 16m --sync-file-bytes 16m \
        --mmap-bytes 16m --mmap-file $arguments > "$2/stress-ng.out" 2>&1 || {
        echo "$group: failed with $?"
        grep -E 'fail|error|unexpected' "$2/stress-ng.out" || tail -20 "$2/stress-ng.out"
        failed="$failed$group; "
    }
done
test -z "$failed" || exit 1
