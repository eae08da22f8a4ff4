//! Two ends on one thread try all that a provider can: messages, memory that the peer reads and
//! writes, keys that are wrong or too old, ends of a connection. On real devices, where there are
//! any, or on the emulation.
//!
//! ```text
//! cargo run --example exchange -- verbs ADDRESS [NAME]     an address of an RDMA device
//! cargo run --example exchange -- emulated DIRECTORY [NAME]
//! ```
//!
//! With a NAME only scenarios whose name has it run. `reset` is one of its own: it wants somebody
//! else to take the device away when it says so, and to bring it back. The exit code is 0 if all
//! went as it should.

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

use ends::Place;

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
    let (kind, place, name) = match &arguments[..] {
        [kind, place] => (kind.as_str(), place, ""),
        [kind, place, name] => (kind.as_str(), place, name.as_str()),
        _ => return Err("usage: exchange verbs ADDRESS | emulated DIRECTORY [NAME]".into()),
    };
    let (provider, ip) = provider(kind, place)?;
    for (address, network) in provider.addresses()? {
        println!("address {address}: {network:?}");
    }
    let place = Place::new(provider, SocketAddr::new(ip, 0))?;
    println!("listens on {}", place.listener.local_addr());
    if name == "reset" {
        println!("{}", scenarios::reset(place, ip));
        return Ok(0);
    }
    Ok(scenarios::ALL
        .iter()
        .filter(|(known, _)| known.contains(name))
        .filter(|(name, scenario)| !is_good(&place, name, *scenario))
        .count())
}

fn provider(kind: &str, place: &str) -> Result<(Box<dyn Provider>, IpAddr), Box<dyn Error>> {
    Ok(match kind {
        "verbs" => (Box::new(Verbs::load()?), place.parse()?),
        "emulated" => {
            let emulated = Emulated::new(place.as_ref(), Faults::default())?;
            (Box::new(emulated), Ipv4Addr::LOCALHOST.into())
        }
        _ => return Err(format!("there is no provider {kind}").into()),
    })
}

fn is_good(place: &Place, name: &str, scenario: scenarios::Scenario) -> bool {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| scenario(place)));
    let took = start.elapsed();
    match &result {
        Ok(notes) => println!("ok     {name} ({took:.1?}) {notes}"),
        Err(_) => println!("FAILED {name} ({took:.1?})"),
    }
    result.is_ok()
}
