# Functions for the scripts of an RDMA guest. The devices have no hardware: siw (iWARP) and rxe
# (RoCE) both use the network device dummy0, which has the address ADDRESS.
ADDRESS=10.78.0.1
KSMBD=/opt/ksmbd-tools/usr/sbin

# step WORD...: prints the position of the script and the time.
step() {
    echo "step at $(cut -d' ' -f1 /proc/uptime): $*"
}

# rdma_up TYPE...: makes the device TYPE0 for siw or rxe. It turns IPv6 off: a server would offer
# link-local addresses as channels, and no client reaches them.
rdma_up() {
    echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
    if ! ip link show dummy0 > /dev/null 2>&1; then
        ip link add dummy0 type dummy
    fi
    ip addr replace $ADDRESS/24 dev dummy0
    ip link set dummy0 up
    for type in "$@"; do
        rdma link add "${type}0" type "$type" netdev dummy0
    done
}

# rdma_up_too TYPE: makes a second device, TYPE1, with a separate address.
rdma_up_too() {
    ip link add dummy1 type dummy
    ip addr add 10.79.0.1/24 dev dummy1
    ip link set dummy1 up
    rdma link add "${1}1" type "$1" netdev dummy1
}

# rdma_replug TYPE SECONDS: removes the device during its use and adds a new one.
rdma_replug() {
    rdma link delete "${1}0"
    sleep "$2"
    rdma link add "${1}0" type "$1" netdev dummy0
}

# queue_pairs TYPE: how many queue pairs of the device carry data (the one of management does not).
queue_pairs() {
    rdma resource show qp link "${1}0" | grep -c 'type RC.*state RTS'
}

# until_listening PORT [SECONDS]: waits for a listener of TCP.
until_listening() {
    tries=$((${2:-10} * 10))
    until ss -ltn | grep -q ":$1 "; do
        tries=$((tries - 1))
        if [ $tries = 0 ]; then
            echo "no server listens on $1" >&2
            return 1
        fi
        sleep 0.1
    done
}

# ksmbd_up DIRECTORY USER PASSWORD [LINE]...: shares DIRECTORY as `data` with the kernel's server.
# It listens on every existing RDMA device. LINEs go to its [global].
ksmbd_up() {
    mkdir -p /run/ksmbd
    rm -f /run/ksmbd/ksmbdpwd.db
    {
        printf '[global]\nnetbios name = GUEST\n'
        printf '%s\n' 'server multi channel support = yes' 'smb3 encryption = auto'
        directory=$1 user=$2 password=$3
        shift 3
        for line in "$@"; do
            printf '%s\n' "$line"
        done
        printf '[data]\npath = %s\nread only = no\n' "$directory"
    } > /run/ksmbd/ksmbd.conf
    $KSMBD/ksmbd.adduser -C /run/ksmbd/ksmbd.conf -P /run/ksmbd/ksmbdpwd.db \
        -a "$user" -p "$password"
    $KSMBD/ksmbd.mountd -C /run/ksmbd/ksmbd.conf -P /run/ksmbd/ksmbdpwd.db
    port=$(sed -n 's/^tcp port = //p' /run/ksmbd/ksmbd.conf)
    until_listening "${port:-445}"
}

# smbeam_up PROGRAM DIRECTORY USER PASSWORD TRANSPORT...: shares DIRECTORY as `data` with smbeam.
# The log is /run/smbeam/log.
smbeam_up() {
    mkdir -p /run/smbeam
    test -f /run/smbeam/users.toml || printf '%s\n' "$4" |
        "$1" user add --password-stdin --file /run/smbeam/users.toml "$3" > /run/smbeam/log
    program=$1 directory=$2
    shift 4
    transports=$(printf '"%s", ' "$@")
    cat > /run/smbeam/smbeam.toml << END
[server]
listen = ["0.0.0.0"]
transports = [${transports%, }]
users = "/run/smbeam/users.toml"
[[share]]
name = "data"
path = "$directory"
END
    "$program" serve --config /run/smbeam/smbeam.toml > /run/smbeam/log 2>&1 &
    SMBEAM=$!
    tries=600
    # The log has one such line per transport.
    until test "$(grep -c '^listening on' /run/smbeam/log)" -ge $#; do
        tries=$((tries - 1))
        if [ $tries = 0 ] || ! kill -0 $SMBEAM 2> /dev/null; then
            echo 'smbeam does not listen:'
            cat /run/smbeam/log
            return 1
        fi
        sleep 0.1
    done
}

# within SECONDS PID: waits for a background process and returns its exit code; 124: it still runs.
within() {
    timeout "$1" tail --pid="$2" -s 0.1 -f /dev/null || return 124
    wait "$2"
}

# ksmbd_down: ends it, so that another can be started.
ksmbd_down() {
    $KSMBD/ksmbd.control --shutdown
    while pidof ksmbd.mountd > /dev/null; do
        sleep 0.1
    done
}

# complaints: prints the warnings and errors of the kernel; fails if it has none.
complaints() {
    dmesg | grep -E 'WARNING|BUG|Oops|Call Trace|blocked for more|refcount|general protection'
}
