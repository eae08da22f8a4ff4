#!/bin/sh
# The first process of a user-mode Linux guest: mounts what a Linux needs, gives the tap device its
# address, runs the script that the kernel command line names (smbeam.run=PATH) and powers off. The
# last line on the console is "GUEST-END rc=N"; without it the guest crashed.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/dev/shm LC_ALL=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for dir in /dev/shm /run /mnt; do
    mkdir -p "$dir"
    mount -t tmpfs guest "$dir"
done
script=''
address=''
read -r cmdline < /proc/cmdline
for word in $cmdline; do
    case $word in
        smbeam.run=*) script=${word#smbeam.run=} ;;
        smbeam.address=*) address=${word#smbeam.address=} ;;
    esac
done
ip link set lo up
if [ -n "$address" ]; then
    ip addr add "$address" dev vec0
    ip link set vec0 up
fi
echo "GUEST-UP $(uname -r)"
sh "$script"
echo "GUEST-END rc=$?"
sync
echo o > /proc/sysrq-trigger
sleep 5
