# git.sh DIRECTORY LOCAL FILES: a clone of a local repository with FILES files, changes in it, and
# a clone of the clone.
set -eu
export HOME="$2" GIT_CONFIG_NOSYSTEM=1
git config --global user.name test
git config --global user.email test@example.com
git config --global safe.directory '*'
git config --global gc.auto 0
git config --global init.defaultBranch main
git init -q "$2/source"
cd "$2/source"
python3 - "$3" <<'END'
import os, sys
for number in range(int(sys.argv[1])):
    directory = f"d{number % 97}/e{number % 11}"
    os.makedirs(directory, exist_ok=True)
    with open(f"{directory}/f{number}", "w") as file:
        file.write(f"line {number}\n" * (number % 40 + 1))
os.symlink("d1/e1", "link")
os.chmod("d1/e1/f1", 0o755)
END
git add .
git commit -q -m one
git clone -q "file://$2/source" "$1/clone"
cd "$1/clone"
clean() {
    changes=$(git status --porcelain)
    test -z "$changes" || { echo "changes: $changes" | head; exit 1; }
}
clean
clean
test "$(readlink link)" = d1/e1
test -x d1/e1/f1
for number in 0 1 2 3 4 5 6 7 8 9; do
    echo more >> "d$number/e$number/f$number"
done
test "$(git status --porcelain | wc -l)" = 10
git checkout -q -b other
git mv d1 moved
git commit -q -a -m two
git checkout -q main
git merge -q other
git stash list
git gc -q
git fsck --full --strict
clean
git log --stat -1 | tail -1
git clone -q "file://$1/clone" "$2/back"
diff -r --no-dereference --exclude=.git "$1/clone" "$2/back"
