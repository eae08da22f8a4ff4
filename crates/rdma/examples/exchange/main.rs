//! Two ends on one thread test all functions of a provider: messages, memory that the peer reads
//! and writes, wrong and stale keys, ends of a connection. It uses real devices or the emulation.
//!
//! ```text
//! cargo run --example exchange -- verbs ADDRESS [NAME]     an address of an RDMA device cargo run
//! --example exchange -- emulated DIRECTORY [NAME]
//! ```
//!
//! With a NAME it runs only scenarios with that text in their names. `reset` is a separate
//! scenario: it waits until the user removes the device, when it asks for that, and adds it again.
//! The exit code is 0 if all scenarios succeed.

mod ends;
mod scenarios;

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use smbeam_rdma::Provider;
use smbeam_rdma::emulated::{Emulated, Faults};
use smbeam_rdma::verbs::Verbs;

use ends::Location;

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("{failed} scenarios failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("exchange: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<usize, Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (kind, location, name) = match &arguments[..] {
        [kind, location] => (kind.as_str(), location, ""),
        [kind, location, name] => (kind.as_str(), location, name.as_str()),
        _ => return Err("usage: exchange verbs ADDRESS | emulated DIRECTORY [NAME]".into()),
    };
    let (provider, ip) = provider(kind, location)?;
    for (address, network) in provider.addresses()? {
        println!("address {address}: {network:?}");
    }
    let location = Location::new(provider, SocketAddr::new(ip, 0))?;
    println!("listens on {}", location.listener.local_addr());
    if name == "reset" {
        println!("{}", scenarios::reset(location, ip));
        return Ok(0);
    }
    Ok(scenarios::ALL
        .iter()
        .filter(|(known, _)| known.contains(name))
        .filter(|(name, scenario)| !is_good(&location, name, *scenario))
        .count())
}

fn provider(kind: &str, location: &str) -> Result<(Box<dyn Provider>, IpAddr), Box<dyn Error>> {
    Ok(match kind {
        "verbs" => (Box::new(Verbs::load()?), location.parse()?),
        "emulated" => {
            let emulated = Emulated::new(location.as_ref(), Faults::default())?;
            (Box::new(emulated), Ipv4Addr::LOCALHOST.into())
        }
        _ => return Err(format!("there is no provider {kind}").into()),
    })
}

fn is_good(location: &Location, name: &str, scenario: scenarios::Scenario) -> bool {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| scenario(location)));
    let took = start.elapsed();
    match &result {
        Ok(notes) => println!("ok     {name} ({took:.1?}) {notes}"),
        Err(_) => println!("FAILED {name} ({took:.1?})"),
    }
    result.is_ok()
}
