#!/bin/bash
# Boots a Debian with systemd in user-mode Linux. systemd opens the port of the package's socket
# unit, starts the hardened service at the first connection, reloads, restarts and stops it.
#
# usage: unshare --mount --net --propagation private -- systemd.sh DEB ROOT LAB
# DEB is the package, ROOT a Debian with systemd, LAB a system with user-mode Linux (linux.uml).
set -euo pipefail
deb=$1 root=$2 lab=$3
. "$(dirname "$0")/steps.sh"

say 'install the package, and enable its socket'
cp "$deb" "$root/tmp/smbeam.deb"
run chroot "$root" dpkg --install /tmp/smbeam.deb
run chroot "$root" systemctl enable smbeam.socket
sed -i -e 's/^# \[\[share\]\]/[[share]]/' -e 's/^# name = /name = /' -e 's/^# path = /path = /' \
    "$root/etc/smbeam/smbeam.toml"
chroot "$root" useradd --create-home alice
mkdir -p "$root/srv/data"
chown --reference="$root/home/alice" "$root/srv/data"
printf '%s' "$password" | chroot "$root" smbeam user add --password-stdin \
    --file /etc/smbeam/users.toml alice

# What the machine does after its start. Its output is the report.
cat > "$root/usr/local/bin/report" <<EOF
#!/bin/bash
exec > /report.txt 2>&1
set -x
export SMBEAM_PASSWORD=$password
systemctl is-active smbeam.service
smbeam ls smb://alice@127.0.0.1/data
# The service may still be starting.
systemctl start smbeam.service
systemctl is-active smbeam.service
systemctl show smbeam.service --property Type,StatusText,SubState
smbeam mkdir smb://alice@127.0.0.1/data/directory
systemctl reload smbeam.service
echo "reload: \$?"
systemctl restart smbeam.service
echo "restart: \$?"
smbeam ls smb://alice@127.0.0.1/data
printf '[[share]]\npth = "/"\n' > /etc/smbeam/conf.d/broken.toml
systemctl reload smbeam.service
echo "broken reload: \$?"
systemctl is-active smbeam.service
rm /etc/smbeam/conf.d/broken.toml
journalctl --unit smbeam.service --no-pager --output cat
systemctl stop smbeam.socket smbeam.service
systemctl show smbeam.service --property Result,ExecMainStatus
echo the end
set +x
systemctl --force --force poweroff
EOF
chmod 755 "$root/usr/local/bin/report"
cat > "$root/etc/systemd/system/report.service" <<'EOF'
[Unit]
After=network.target
[Service]
ExecStart=/usr/local/bin/report
EOF
ln -sf ../report.service "$root/etc/systemd/system/multi-user.target.wants/report.service"

say 'boot'
mount --bind "$(dirname "$root")" "$lab/mnt"
mount -t proc proc "$lab/proc"
mount --rbind /dev "$lab/dev"
# The memory of the machine is a file in TMPDIR.
timeout 240 chroot "$lab" env TMPDIR=/dev/shm HOME=/tmp linux.uml mem=768M \
    root=/dev/root rootfstype=hostfs "hostfs=/mnt/$(basename "$root")" rw \
    init=/lib/systemd/systemd con=null con0=null,fd:1 < /dev/null || true
run cat "$root/report.txt"

say 'check the report'
report() {
    if ! grep -qE -- "$1" "$root/report.txt"; then
        printf 'no %s in the report\n' "$1"
        exit 1
    fi
}
report '^inactive$'
report '^active$'
report '^Type=notify$'
report '^StatusText=listening on .*:445'
report '^reload: 0$'
report '^restart: 0$'
report '^directory'
report '^broken reload: [1-9]'
report 'broken.toml.*pth'
report '^Result=success$'
report '^ExecMainStatus=0$'
report '^the end$'
say 'done'
