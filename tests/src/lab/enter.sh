# Runs a command with another directory as its root: enter ROOT [--accounts DIR]
# [--bind DIR]... CMD [ARG]...
# Started in a separate mount namespace, so that the mounts end with the command and removing
# ROOT is always safe. Each DIR after --bind is seen inside under the same path as outside. The one
# after --accounts has the files passwd and group.
set -eu
cwd=$(pwd -P)
root=$1
shift
for dir in proc sys dev; do
    mount --rbind "/$dir" "$root/$dir"
done
# Servers look their own host's name up: without this they may wait five seconds for a DNS server.
# smbtorture wants a name over QUIC, and does not look localhost up.
if [ -f "$root/etc/hosts" ]; then
    hosts=$(mktemp)
    { cat /etc/hosts; echo "127.0.0.1 smbeam.test"; } > "$hosts"
    chmod 644 "$hosts"
    mount --bind "$hosts" "$root/etc/hosts"
    rm "$hosts"
fi
if [ "${1:-}" = --accounts ]; then
    for file in passwd group; do
        mount --bind "$2/$file" "$root/etc/$file"
    done
    shift 2
fi
while [ "${1:-}" = --bind ]; do
    mkdir -p "$root$2"
    mount --rbind "$2" "$root$2"
    shift 2
done
exec chroot "$root" /bin/sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$cwd" "$@"
