#!/bin/bash
# Unpacks the container image, starts it in name spaces as an ordinary user, and uses it.
#
# usage: unshare --mount --net --propagation private -- container.sh IMAGE BUNDLE LAB
# IMAGE is the image with its tag, BUNDLE a directory that does not exist, LAB a system with
# smbclient.
set -euo pipefail
image=$1 bundle=$2 lab=$3
root=$bundle/rootfs
. "$(dirname "$0")/steps.sh"

# Becomes a program of the container, with the environment of the image, as its user.
enter() {
    exec env --ignore-environment "${environment[@]}" SMBEAM_PASSWORD="${SMBEAM_PASSWORD:-}" \
        chroot --userspec=1000:1000 --groups= "$root" "$@"
}

inside() {
    (enter "$@")
}

smbeam() {
    inside /usr/bin/smbeam "$@"
}

say 'unpack the image'
run umoci unpack --image "$image" "$bundle"
prepare_namespace
# As container platforms do.
sysctl --quiet --write net.ipv4.ip_unprivileged_port_start=0
mapfile -t environment < <(python3 -c '
import json, sys
print("\n".join(json.load(open(sys.argv[1]))["process"]["env"]))' "$bundle/config.json")
mapfile -t arguments < <(python3 -c '
import json, sys
print("\n".join(json.load(open(sys.argv[1]))["process"]["args"]))' "$bundle/config.json")
printf '%s\n' "${environment[@]}" "${arguments[*]}"

say 'users, a share and further files, as volumes and variables'
mkdir -p "$root/srv/more"
chown 1000:1000 "$root/srv/data" "$root/srv/more" "$root/etc/smbeam" "$root/etc/smbeam/conf.d"
printf '%s' "$password" | inside /usr/bin/smbeam user add --password-stdin \
    --file /etc/smbeam/users.toml alice
environment+=(
    SMBEAM_SERVER__USERS=/etc/smbeam/users.toml
    SMBEAM_SHARE_DATA__PATH=/srv/data
    SMBEAM_METRICS__LISTEN=127.0.0.1:9445
    SMBEAM_AUDIT__TARGET=/var/lib/smbeam/audit.jsonl
)
printf '%s\n' "${environment[@]}"

say 'start the container as user 1000'
enter "${arguments[@]}" > "$bundle/server.log" 2>&1 &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
wait_for smbeam status
run cat "$bundle/server.log"

use_server "$root/var/lib/smbeam/audit.jsonl" "$root/etc/smbeam/conf.d" /srv/more

say 'the health check of the compose file'
expect '"version":' smbeam status --json

say 'stop the container'
kill -TERM "$server"
run wait "$server"
say 'done'
