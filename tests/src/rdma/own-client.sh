# smbeam's client works on a share of ksmbd. DEVICE: siw or rxe. TRANSPORT: smbdirect, tcp.
# OPTIONS: more for the client. FOLDER: of the host, with the programs, the tree, and from-guest for
# what comes back. RESET: not empty where the device is pulled out in the midst of it.
set -e
trap 'code=$?; test $code = 0 || { echo "failed with $code"; dmesg | tail -40; }' EXIT
mkdir -p /mnt/share
chmod 777 /mnt/share
rdma_up $DEVICE
# Where RDMA is meant there is nothing else: TCP is on a port where nobody looks for it.
case $TRANSPORT in
    tcp) ksmbd_up /mnt/share "$NAME" "$PASSWORD" ;;
    *) ksmbd_up /mnt/share "$NAME" "$PASSWORD" 'tcp port = 4450' ;;
esac
printf '%s\n' "$PASSWORD" > /run/password
# The guest reads its own memory much faster than the host's files.
mkdir /run/here
cp -a $FOLDER/tree $FOLDER/large /run/here/
test -z "$RESET" || cp $FOLDER/larger /run/here/
URL=smb://$NAME@$ADDRESS/data
export HOME=/run

smbeam() {
    command=$1
    shift
    $FOLDER/smbeam $command --transports $TRANSPORT --password-file /run/password $OPTIONS "$@"
}

# rate WORD COMMAND...: how fast the large file goes; for the reader, nothing depends on it.
rate() {
    word=$1
    shift
    begin=$(cut -d' ' -f1 /proc/uptime)
    "$@"
    end=$(cut -d' ' -f1 /proc/uptime)
    size=$(stat -c %s /run/here/large)
    echo "rate: own client $TRANSPORT $DEVICE $OPTIONS $word: \
$(awk "BEGIN { printf \"%.0f\", $size / ($end - $begin + 0.001) / 1e6 }") MB/s"
}

rate put smbeam put /run/here/large $URL/large
cmp /run/here/large /mnt/share/large
rate get smbeam get $URL/large /run/here/back
cmp /run/here/large /run/here/back
step tree there
smbeam put -r --verify /run/here/tree $URL/
diff -r /run/here/tree /mnt/share/tree
step tree back
smbeam get -r --verify $URL/tree $FOLDER/from-guest/
step sync
smbeam sync --verify --checksum /run/here/tree $URL/synced
diff -r /run/here/tree /mnt/share/synced
echo changed > /mnt/share/synced/new
smbeam sync --verify --checksum --delete $URL/tree $URL/synced
diff -r /run/here/tree /mnt/share/synced

if [ -z "$RESET" ]; then
    for sizes in small large; do
        step exercise $sizes
        $FOLDER/rdma_peers exercise $TRANSPORT "$PROTECTION" $ADDRESS $OPERATIONS $sizes
    done
fi

if [ -n "$RESET" ]; then
    smbeam put /run/here/larger $URL/again &
    PUT=$!
    sleep 0.5
    # It is in the midst of its work, or this says nothing.
    kill -0 $PUT
    step unplug
    rdma_replug $DEVICE 1
    step back again
    # Whoever lost the connection is told, and goes on where it was.
    within 200 $PUT || smbeam put --continue --verify /run/here/larger $URL/again
    cmp /run/here/larger /mnt/share/again
    smbeam get --verify $URL/again /run/here/again
    cmp /run/here/larger /run/here/again
fi

smbeam rm -r $URL/tree $URL/synced
ksmbd_down
rdma link delete ${DEVICE}0
complaints && exit 99
exit 0
