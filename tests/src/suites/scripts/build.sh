# build.sh DIRECTORY LOCAL: builds a Rust program with a library of 40 modules, a build script and
# incremental compilation in DIRECTORY, changes a file and builds it again.
set -eu
cd "$1"
mkdir -p program/src program/library/src
cat > program/Cargo.toml <<END
[workspace]
members = ["library"]
[package]
name = "program"
version = "0.1.0"
edition = "2021"
[dependencies]
library = { path = "library" }
END
cat > program/library/Cargo.toml <<END
[package]
name = "library"
version = "0.1.0"
edition = "2021"
END
cat > program/library/build.rs <<END
use std::{env, fs, path::Path};
fn main() {
    let path = Path::new(&env::var("OUT_DIR").unwrap()).join("generated.rs");
    fs::write(path, "pub const GENERATED: u64 = 1;").unwrap();
}
END
cd program
{
    echo 'include!(concat!(env!("OUT_DIR"), "/generated.rs"));'
    echo 'pub fn sum() -> u64 { let mut sum = 0;'
    for number in $(seq 40); do echo "sum += m$number::value();"; done
    echo 'sum * GENERATED }'
    for number in $(seq 40); do echo "mod m$number;"; done
} > library/src/lib.rs
for number in $(seq 40); do
    echo "pub fn value() -> u64 { (1..=$number).map(|_| 1u64).sum() }" > "library/src/m$number.rs"
done
echo 'fn main() { println!("the sum is {}", library::sum()); }' > src/main.rs
cargo build --offline --quiet
test "$(target/debug/program)" = "the sum is 820"
echo 'pub fn value() -> u64 { 41 }' > library/src/m40.rs
touch -d '+2 seconds' library/src/m40.rs
cargo build --offline --quiet
test "$(target/debug/program)" = "the sum is 821"
cargo clean --quiet
test ! -e target
cargo build --offline --quiet --release
target/release/program | sed s/821/820/
