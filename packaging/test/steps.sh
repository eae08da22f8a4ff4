# Functions of the tests of packages. Each prints its command and the output: a transcript.
# The script that reads this file sets `root` (the root of the machine) and `lab` (a root with
# smbclient), and defines `smbeam`, which runs the installed program.

password=secret-for-tests

say() {
    printf '\n## %s\n' "$*"
}

# Runs a command, and prints both.
run() {
    printf '$ %s\n' "$*"
    "$@"
}

# Runs a command and expects an extended regular expression in its output.
expect() {
    local pattern=$1 output
    shift
    printf '$ %s\n' "$*"
    if ! output=$("$@" 2>&1); then
        printf '%s\nfailed: %s\n' "$output" "$*"
        exit 1
    fi
    printf '%s\n' "$output"
    if ! grep -qE -- "$pattern" <<< "$output"; then
        printf 'no %s in the output\n' "$pattern"
        exit 1
    fi
}

# Runs a command that must fail with an exit code, and expects a pattern in its output.
expect_failure() {
    local code=$1 pattern=$2 output found=0
    shift 2
    printf '$ %s\n' "$*"
    output=$("$@" 2>&1) || found=$?
    printf '%s\nexit code %s\n' "$output" "$found"
    if [ "$found" != "$code" ] || ! grep -qE -- "$pattern" <<< "$output"; then
        printf 'not the code %s, or no %s in the output\n' "$code" "$pattern"
        exit 1
    fi
}

# Waits until a command succeeds.
wait_for() {
    local count
    for count in $(seq 300); do
        if "$@" > /dev/null 2>&1; then
            return
        fi
        sleep 0.1
    done
    printf 'not in time: %s\n' "$*"
    exit 1
}

# A name space of its own: only the loopback, and the devices in both roots.
prepare_namespace() {
    ip link set lo up
    local place
    for place in "$root" "$lab"; do
        mkdir -p "$place/dev" "$place/proc"
        mount --rbind /dev "$place/dev"
        mount -t proc proc "$place/proc"
    done
}

smbclient() {
    local share=$1
    shift
    chroot "$lab" smbclient "//127.0.0.1/$share" --user "alice%$password" "$@"
}

# Uses the share `data` as clients and administrators do. $1 is the audit log, $2 the directory of
# further configuration files, and $3 the path of a further share inside of the machine.
use_server() {
    local audit=$1 more=$2 path=$3

    say 'log in from smbclient and smbeam'
    expect 'file.txt' smbclient data --command 'mkdir directory; put /etc/hostname file.txt; ls'
    export SMBEAM_PASSWORD=$password
    expect 'file.txt' smbeam ls smb://alice@127.0.0.1/data/
    export SMBEAM_PASSWORD=wrong
    expect_failure 4 'password|login' smbeam ls smb://alice@127.0.0.1/data/
    export SMBEAM_PASSWORD=$password

    say 'scrape it'
    expect '^smbeam_logins_total [1-9]' curl --silent http://127.0.0.1:9445/metrics
    expect '"ready":true' curl --silent http://127.0.0.1:9445/readyz

    say 'end a session'
    sleep 60 | smbclient data > /dev/null 2>&1 &
    local client=$!
    wait_for has_session
    expect 'alice' smbeam session list
    expect 'ended session' smbeam session end --user alice
    expect 'no sessions' smbeam session list
    kill "$client" 2> /dev/null || true

    say 'read the audit log'
    wait_for grep -q '"event":"create"' "$audit"
    expect '"user":"alice"' grep '"event":"create"' "$audit"
    expect '"outcome":"(denied|failed)"' grep '"event":"login"' "$audit"

    say 'reload with a broken file'
    printf '[[share]]\nname = "more"\npth = "%s"\n' "$path" > "$more/more.toml"
    expect_failure 2 'more.toml.*pth' smbeam reload
    expect 'file.txt' smbclient data --command ls

    say 'reload with a good file'
    printf '[[share]]\nname = "more"\npath = "%s"\n' "$path" > "$more/more.toml"
    expect 'more.*added' smbeam reload
    expect 'blocks available' smbclient more --command ls
}

has_session() {
    smbeam session list | grep -q alice
}
