#!/bin/bash
# Installs the package of Debian on a system that has nothing of smbeam, starts the server as its
# unit does, and uses it.
#
# usage: unshare --mount --net --propagation private -- debian.sh DEB ROOT LAB
# DEB is the package, ROOT an empty system of Debian (debootstrap), LAB a system with smbclient.
set -euo pipefail
deb=$1 root=$2 lab=$3
. "$(dirname "$0")/steps.sh"

smbeam() {
    chroot "$root" /usr/bin/smbeam "$@"
}

prepare_namespace
config=$root/etc/smbeam/smbeam.toml

say 'install the package'
cp "$deb" "$root/tmp/smbeam.deb"
run chroot "$root" dpkg --install /tmp/smbeam.deb
expect '^smbeam [0-9]' smbeam --version
run chroot "$root" dpkg --listfiles smbeam
test -s "$root/usr/lib/systemd/system/smbeam.service"
test -s "$root/usr/lib/systemd/system/smbeam.socket"

say 'edit the configuration, and add a user'
run sed -i -e 's/^# \[\[share\]\]/[[share]]/' -e 's/^# name = /name = /' \
    -e 's/^# path = /path = /' "$config"
mkdir -p "$root/var/log/smbeam" "$root/srv/data" "$root/srv/more"
cat > "$root/etc/smbeam/conf.d/operation.toml" <<'EOF'
[metrics]
listen = "127.0.0.1:9445"
[audit]
target = "/var/log/smbeam/audit.jsonl"
EOF
run chroot "$root" useradd --create-home alice
chown --reference="$root/home/alice" "$root/srv/data" "$root/srv/more"
printf '%s' "$password" | smbeam user add --password-stdin --file /etc/smbeam/users.toml alice
expect 'no mistakes|valid|ok|good' smbeam config check /etc/smbeam/smbeam.toml

say 'start the server as the unit does'
start=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/smbeam.service")
mkdir -p "$root/run/smbeam"
printf '$ %s\n' "$start"
# shellcheck disable=SC2086
chroot "$root" $start > "$root/tmp/server.log" 2>&1 &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
wait_for smbeam status
run cat "$root/tmp/server.log"

use_server "$root/var/log/smbeam/audit.jsonl" "$root/etc/smbeam/conf.d" /srv/more

say 'stop the server and remove the package'
kill -TERM "$server"
run wait "$server"
run chroot "$root" dpkg --purge smbeam
if [ -e "$root/usr/bin/smbeam" ]; then
    printf 'the program is still there\n'
    exit 1
fi
say 'done'
