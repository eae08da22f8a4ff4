# fio.sh DIRECTORY LOCAL MIB: random writes and reads in blocks of several sizes, which fio
# verifies, through the page cache and beside it. Its progress would stay a line without an end.
set -eu
cd "$2"
for direct in 0 1; do
    fio --eta=never --name="verify$direct" --directory="$1" --size="$3m" \
        --numjobs=2 --direct="$direct" \
        --ioengine=psync --rw=randrw --bsrange=4k-256k --blockalign=4k --verify=crc32c \
        --verify_fatal=1 --verify_dump=0 --end_fsync=1 --unlink=1 --output="$2/fio.out" || {
        tail -30 "$2/fio.out"
        exit 1
    }
    grep -E 'err=' "$2/fio.out"
done
fio --eta=never --name=asynchronous --directory="$1" --size="$3m" \
    --direct=1 --ioengine=libaio --iodepth=16 \
    --rw=randwrite --bs=16k --verify=crc32c --verify_fatal=1 --unlink=1 --output="$2/fio.out" || {
    tail -30 "$2/fio.out"
    exit 1
}
