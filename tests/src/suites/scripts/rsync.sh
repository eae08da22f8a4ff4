# rsync.sh DIRECTORY LOCAL FLAGS...: the tree LOCAL/tree goes to DIRECTORY and comes back.
set -eu
rsync -aHAX --checksum "$2/tree/" "$1/tree/"
rsync -aHAX --checksum "$1/tree/" "$2/back/"
for target in "$1/tree/" "$2/back/"; do
    differences=$(rsync -n -aHAX --checksum -i --delete "$2/tree/" "$target")
    test -z "$differences" || { echo "$target: $differences" | head -50; exit 1; }
done
