//! Developer commands: demo, test, torture, lab, bench-compare, bench-ai.
#![forbid(unsafe_code)]

mod bench;
mod bench_ai;
mod crates;
mod demo;
mod host;
mod lab;
mod package;
mod process;
mod soak;
mod table;
mod test;
mod torture;
mod workspace;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [STEP]...          everything that must pass: fmt, clippy, doc, deny, build, unit, lab,
                          interop
  test full [STEP]...     the same with every transport, full sizes and all rounds
  test rdma               both ends against real peers over RDMA, in a virtual machine
  torture [NAME]...       every test of smbtorture on ext4 and btrfs, with the score beside Samba's
  soak [--hours N]        many seeds, each fuzz target in turn, large files; recorded
  package [NAME]...       packages of Debian and RPM, archive, container image, bill of materials,
                          static binary
  demo                    serve a temporary share and let smbclient use it: plain, signed, encrypted
  lab                     build the peers that the tests talk to, in a cache directory
  lab browser             add a browser for the web page of a server
  lab rdma                add a guest with RDMA devices and a kernel built from source
  lab run CMD [ARG]...    run a command of the lab, such as smbclient
  lab field [NAME]...     replay faults that users of file servers reported
  lab attacks [NAME]...   attack a server; --figures prints memory, rates and latencies
  lab path                print the path of the lab
  bench-compare [ARG]...  compare speed, CPU and memory with the lab's smbd
  bench-ai [TABLE | WORKLOAD]...
                          the workloads of MLPerf Storage over SMB and NFS, and local";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let result = match command {
        "test" => test::run(rest),
        "soak" => soak::run(rest),
        "demo" => demo::run(),
        "bench-compare" => bench::run(rest),
        "bench-ai" => bench_ai::run(rest),
        "lab" => lab::run(rest),
        "torture" => torture::run(rest),
        "package" => package::run(rest),
        _ => {
            println!("{USAGE}");
            return ExitCode::from(if command == "help" { 0 } else { 2 });
        }
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
