# smbeam's client works on a share. DEVICE: siw or rxe. SERVER: ksmbd, smbeam. TRANSPORT: smbdirect,
# tcp, auto. OPTIONS: more for the client. DIRECTORY: of the host, with the programs, the tree, and
# from-guest for the files from the share. RESET: not empty if the test removes the device.
set -e
trap 'code=$?; test $code = 0 || { echo "failed with $code"; dmesg | tail -40; }' EXIT
mkdir -p /mnt/share
chmod 777 /mnt/share
rdma_up $DEVICE
# For RDMA alone the server listens for TCP on a port that no client tries.
server_up() {
    case $SERVER-$TRANSPORT in
        smbeam-*) smbeam_up $DIRECTORY/smbeam /mnt/share "$NAME" "$PASSWORD" tcp:445 smbdirect ;;
        *-tcp) ksmbd_up /mnt/share "$NAME" "$PASSWORD" ;;
        *) ksmbd_up /mnt/share "$NAME" "$PASSWORD" 'tcp port = 4450' ;;
    esac
}
server_down() {
    case $SERVER in
        smbeam) kill $SMBEAM; within 20 $SMBEAM ;;
        ksmbd) ksmbd_down ;;
    esac
}
server_up
printf '%s\n' "$PASSWORD" > /run/password
# The guest reads its own memory much faster than the host's files.
mkdir /run/here
cp -a $DIRECTORY/tree $DIRECTORY/large /run/here/
test -z "$RESET" || cp $DIRECTORY/larger /run/here/
URL=smb://$NAME@$ADDRESS/data
export HOME=/run

smbeam() {
    command=$1
    shift
    $DIRECTORY/smbeam $command --transports $TRANSPORT --password-file /run/password $OPTIONS "$@"
}

# rate WORD COMMAND...: prints the rate of the large file, for the reader: no check depends on it.
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
smbeam get -r --verify $URL/tree $DIRECTORY/from-guest/
step sync
smbeam sync --verify --checksum /run/here/tree $URL/synced
diff -r /run/here/tree /mnt/share/synced
echo changed > /mnt/share/synced/new
smbeam sync --verify --checksum --delete $URL/tree $URL/synced
diff -r /run/here/tree /mnt/share/synced

if [ -z "$RESET" ]; then
    for sizes in small large; do
        step exercise $sizes
        $DIRECTORY/rdma_peers exercise $TRANSPORT "$PROTECTION" $ADDRESS $OPERATIONS $sizes
    done
fi

# lose PID: loses the connection during the work of a program. If the program is already done, the
# case shows nothing. The program continues by itself at the same position.
lose() {
    # Before that it logs in and opens files, once.
    timeout 60 sh -c 'until find /mnt/share /run/here -newer /run/before -size +1M | grep -q .
        do sleep 0.05; done'
    kill -0 $1
    test $TRANSPORT = tcp || test "$(queue_pairs $DEVICE)" -gt 0
    step unplug
    case $TRANSPORT in
        smbdirect | auto) rdma_replug $DEVICE 1 ;;
        *) server_down
            sleep 1
            server_up ;;
    esac
    step back again
    within 200 "$1"
}

if [ -n "$RESET" ]; then
    # With TCP as a spare the session survives: the client must not connect again.
    RECONNECT=60
    test $TRANSPORT != auto || RECONNECT=0
    touch /run/before
    smbeam put --reconnect $RECONNECT --verify /run/here/larger $URL/again &
    lose $!
    cmp /run/here/larger /mnt/share/again
    touch /run/before
    smbeam get --reconnect $RECONNECT --verify $URL/again /run/here/again &
    lose $!
    cmp /run/here/larger /run/here/again
fi

smbeam rm -r $URL/tree $URL/synced
server_down
rdma link delete ${DEVICE}0
complaints && exit 99
exit 0
