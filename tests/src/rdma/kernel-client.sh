# The kernel's client works on a share. DEVICE: siw or rxe. SERVER: smbeam, ksmbd. TRANSPORT:
# smbdirect, tcp. OPTIONS: more for the mount. DIRECTORY: of the host, with the programs, the tree,
# and from-guest for the files from the share. RESET: not empty if the test removes the device.
# BRIEF: not empty where this kernel is slow and the exercises are left out.
set -e
ended() {
    code=$?
    if [ $code != 0 ]; then
        echo "failed with $code"
        dmesg | tail -40
        test ! -f /run/smbeam/log || tail -40 /run/smbeam/log
    fi
}
trap ended EXIT
mkdir -p /mnt/share /mnt/data
chmod 777 /mnt/share
rdma_up $DEVICE
case $OPTIONS in
    # It opens one channel to each address.
    *multichannel*) rdma_up_too $DEVICE ;;
esac
server_up() {
    case $SERVER in
        smbeam) smbeam_up $DIRECTORY/smbeam /mnt/share "$NAME" "$PASSWORD" tcp:445 \
            $(test $TRANSPORT = tcp || echo $TRANSPORT) ;;
        ksmbd) ksmbd_up /mnt/share "$NAME" "$PASSWORD" ;;
    esac
}
server_up
if [ $TRANSPORT = smbdirect ]; then
    OPTIONS=$OPTIONS,rdma
fi

# The guest reads its own memory much faster than the host's files.
mkdir /run/here
cp -a $DIRECTORY/tree $DIRECTORY/large /run/here/

# A new mount has an empty cache: all data that it reads come over the wire.
mount_data() {
    mount -t cifs //$ADDRESS/data /mnt/data \
        -o "vers=3.1.1,hard,username=$NAME,password=$PASSWORD,$OPTIONS"
    if [ $TRANSPORT = smbdirect ]; then
        grep -qx 'RDMA *' /proc/fs/cifs/DebugData
        test "$(queue_pairs $DEVICE)" -gt 0
    fi
    if echo "$OPTIONS" | grep -q seal; then
        grep -q encrypted /proc/fs/cifs/DebugData
    fi
    if echo "$OPTIONS" | grep -q multichannel; then
        timeout 10 sh -c "until rdma resource show qp link ${DEVICE}1 | grep -q 'type RC.*state RTS'
            do sleep 0.1; done"
    fi
}

# rate WORD COMMAND...: prints the rate of the large file, for the reader: no check depends on it.
rate() {
    word=$1
    shift
    begin=$(cut -d' ' -f1 /proc/uptime)
    "$@"
    end=$(cut -d' ' -f1 /proc/uptime)
    size=$(stat -c %s /run/here/large)
    echo "rate: $SERVER $TRANSPORT $DEVICE $OPTIONS $word: \
$(awk "BEGIN { printf \"%.0f\", $size / ($end - $begin + 0.001) / 1e6 }") MB/s"
}

mount_data
rate write dd if=/run/here/large of=/mnt/data/large bs=1M conv=fsync status=none
step tree there
cp -a /run/here/tree /mnt/data/
umount /mnt/data
# Compares the files of the server, without the server.
diff -r /run/here/tree /mnt/share/tree
cmp /run/here/large /mnt/share/large

mount_data
rate read dd if=/mnt/data/large of=/run/here/back bs=1M status=none
cmp /run/here/large /run/here/back
diff -r /run/here/tree /mnt/data/tree
umount /mnt/data
mount_data
step tree back
cp -a /mnt/data/tree $DIRECTORY/from-guest/

if [ -z "$RESET$BRIEF" ]; then
    for options in holes 'holes large' 'direct large'; do
        step random_io $options
        case $options in
            *large) operations=$((OPERATIONS / 4)) ;;
            *) operations=$OPERATIONS ;;
        esac
        $DIRECTORY/random_io /mnt/data/random 1 $operations $options
        rm /mnt/data/random
    done
    step mapping
    # The pages of a mapping use the share as well.
    python3 -c "
import mmap, sys
with open('/mnt/data/large', 'r+b') as file, mmap.mmap(file.fileno(), 0) as mapped:
    mapped[4095:4095 + 70000] = b'm' * 70000
    mapped.flush()
with open('/run/here/large', 'rb') as file:
    expected = bytearray(file.read())
expected[4095:4095 + 70000] = b'm' * 70000
sys.exit(open('/mnt/share/large', 'rb').read() != expected)"
fi

# The number of repeated logins of the kernel's client.
reconnects() {
    awk '/session .* share reconnects/ { print $1 }' /proc/fs/cifs/Stats
}

# until_opens: waits until files can be opened.
until_opens() {
    timeout 60 sh -c 'until touch /mnt/data/there; do sleep 0.2; done'
    rm /mnt/data/there
}

# lose_writes: loses the device while WRITEs are in flight; the file is complete at the end. That
# needs a hard mount: with a soft one the kernel's client gives up the WRITEs in flight, leaves
# zeros in their place, and reports that to fsync alone, also over TCP and with its own server. With
# siw, and with rxe and ksmbd, the kernel fails: it continues to use memory of a queue pair that it
# has destroyed (siw_qp_sq_process, rxe_mr_copy). With rxe it warns of that.
lose_writes() {
    complaints && exit 99
    dmesg -C
    dd if=/run/here/large of=/mnt/data/flown bs=1M conv=fsync status=none &
    writer=$!
    timeout 20 sh -c 'until test -s /mnt/share/flown; do sleep 0.02; done'
    step unplug under WRITEs
    rdma_replug $DEVICE 1
    kill -0 $writer
    step back again
    within 200 $writer
    until_opens
    cmp /run/here/large /mnt/share/flown
    rm /mnt/data/flown
    complaints | grep -v -e 'at rxe_post_recv' -e 'Call Trace' && exit 99
    dmesg -C
}

# lose PID: loses the device during the work of a program, and waits until the program has ended.
# If the program is already done, the case shows nothing. No request is in flight meanwhile: the
# first open of a file by its name after a loss may fail with EBADF (Linux 7.3, also with its own
# server).
lose() {
    before=$(reconnects)
    sleep 0.7
    kill -STOP "$1"
    sleep 0.5
    step unplug
    rdma_replug $DEVICE 1
    step back again
    until_opens
    kill -CONT "$1"
    within 400 "$1"
    test $TRANSPORT = tcp || test "$(reconnects)" -gt "$before"
}

if [ -n "$RESET" ]; then
    for options in large 'direct large'; do
        $DIRECTORY/random_io /mnt/data/random 1 $RESET_OPERATIONS $options &
        lose $!
        rm /mnt/data/random
    done
    if [ $SERVER-$TRANSPORT-$DEVICE = smbeam-smbdirect-rxe ]; then
        lose_writes
    fi
    umount /mnt/data
    mount_data
    cmp /run/here/large /mnt/data/large
fi

step remove
rm -r /mnt/data/tree /mnt/data/large
test -z "$(ls -A /mnt/data)"
umount /mnt/data
test -z "$(ls -A /mnt/share)"
case $SERVER in
    smbeam) kill $SMBEAM; within 20 $SMBEAM ;;
    ksmbd) ksmbd_down ;;
esac
for device in /sys/class/infiniband/*; do
    rdma link delete "${device##*/}"
done
complaints && exit 99
exit 0
