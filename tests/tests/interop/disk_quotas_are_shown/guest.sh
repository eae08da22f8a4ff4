# smbeam shares an ext4 file system with quotas. DIRECTORY: of the host, with the file `disk` and
# the program. NAME, PASSWORD, ID: a user. OTHER: another one.
set -e
ended() {
    code=$?
    if [ $code != 0 ]; then
        echo "failed with $code"
        cat /run/smbeam/log
        dmesg | tail -20
    fi
}
trap ended EXIT

# has TEXT PATTERN: the text has a line with the pattern.
has() {
    if ! printf '%s\n' "$1" | grep -q -E "$2"; then
        printf 'no line matches %s in:\n%s\n' "$2" "$1"
        return 1
    fi
}

# refused STATUS COMMAND...: the command fails, and its output has the status.
refused() {
    status=$1
    shift
    if output=$("$@" 2>&1); then
        printf 'not refused: %s\n%s\n' "$*" "$output"
        return 1
    fi
    has "$output" "$status"
}

# The limit of a user without one, as smbcquotas prints it: -1, or as a text in other versions.
NONE='(18446744073709551615|NO LIMIT)'

# quotas USER OPTION...: runs smbcquotas as the user.
quotas() {
    user=$1
    shift
    smbcquotas //127.0.0.1/data -m SMB3 -U "$user%$PASSWORD" "$@"
}

modprobe loop
modprobe quota_v2
modprobe cifs
mkdir -p /run/disk /run/share /run/mounted
mount -o loop,usrquota "$DIRECTORY/disk" /run/disk
mkdir -m 777 /run/disk/data
mkdir -p /run/smbeam
for user in root "$NAME"; do
    printf '%s\n' "$PASSWORD" | "$DIRECTORY/smbeam" user add --password-stdin \
        --file /run/smbeam/users.toml "$user" > /run/smbeam/log
done
smbeam_up "$DIRECTORY/smbeam" /run/disk/data "$NAME" "$PASSWORD" tcp

step 'the volume has quotas, and a user without files has no use and no limits'
has "$(quotas root -F)" 'Quotas Enabled: +On'
has "$(quotas root -F)" 'Deny Disk: +On'
has "$(quotas "$NAME" -u "$NAME")" "$NAME *: +0/ *$NONE/ *$NONE"

step 'a user uses 1 MiB'
mount -t cifs //127.0.0.1/data /run/mounted \
    -o "username=$NAME,password=$PASSWORD,vers=3.1.1,cache=none"
dd if=/dev/urandom of=/run/mounted/first bs=64k count=16 status=none
sync -f /run/disk
has "$(quotas "$NAME" -n -u "S-1-22-1-$ID")" "S-1-22-1-$ID *: +1048576/ *$NONE/ *$NONE"
has "$(smb2-quota -l /run/mounted/first 2>&1)" 'ermission denied|ACCESS_DENIED|not permitted'

step 'root sets limits and lists all users'
quotas root -S "UQLIM:$NAME:2097152/4194304" > /run/set
list=$(quotas root -n -L)
has "$list" "S-1-22-1-$ID *: +1048576/ *2097152/ *4194304"
has "$list" "S-1-22-1-0 *: +[0-9]+/ *$NONE/ *$NONE"
has "$(quotas "$NAME" -u "$NAME")" "$NAME *: +1048576/ *2097152/ *4194304"

step 'the limit holds'
if dd if=/dev/zero of=/run/mounted/second bs=64k count=64 oflag=direct status=none; then
    echo 'a user exceeded the limit'
    exit 1
fi
rm /run/mounted/second

step 'users query no others, and set nothing'
refused ACCESS_DENIED quotas "$NAME" -L
refused ACCESS_DENIED quotas "$NAME" -u "$OTHER"
refused ACCESS_DENIED quotas "$NAME" -S "UQLIM:$NAME:0/0"

step 'cifs.ko lists quotas for root'
umount /run/mounted
mount -t cifs //127.0.0.1/data /run/mounted \
    -o "username=root,password=$PASSWORD,vers=3.1.1"
list=$(smb2-quota -l /run/mounted/first)
has "$list" "S-1-22-1-$ID"
has "$list" 'Quota Used: *1048576'
has "$list" 'Quota Limit: *4194304'
umount /run/mounted

step 'a file system without quotas has none'
kill $SMBEAM
wait $SMBEAM || true
mount -t ramfs none /run/share
smbeam_up "$DIRECTORY/smbeam" /run/share "$NAME" "$PASSWORD" tcp
has "$(quotas "$NAME" -u "$NAME")" 'not supported'
