//! The steps from this machine to a file on a server, each with a time limit.

mod failures;
mod network;
mod path;
mod session;

use std::net::SocketAddr;
use std::time::Duration;

use smbeam_client::{Endpoint, Transport, Transports};
use smbeam_server::Reason as _;
use smbeam_server::doctor::Check;
use wire::dialect::{Capabilities, Dialect};

use super::codes::Found;
use super::probe::{self, Answer, Offer};
use crate::connect::ConnectArguments;
use crate::exit::describe_status;
use crate::location::Url;

/// Longest time of a look-up, a connection and a negotiation.
const STEP_LIMIT: Duration = Duration::from_secs(10);
/// Largest difference of two clocks in seconds without a warning. Kerberos and the times of files
/// need less than five minutes.
const CLOCK_DIFFERENCE_MAX: u64 = 60;

pub(super) fn examine(url: &Url, connect: &ConnectArguments) -> Vec<Check> {
    let mut checks = Vec::new();
    let endpoint = endpoint(url, connect);
    let found = network::resolve(&url.host, endpoint.port, STEP_LIMIT, &mut checks);
    let is_stream = matches!(endpoint.transport, Transport::Tcp | Transport::Nbt);
    let reached = match is_stream {
        true => network::reach(endpoint, &found, STEP_LIMIT, &mut checks),
        false => found.first().copied(),
    };
    let Some(address) = reached else {
        return checks;
    };
    if endpoint.transport == Transport::Tcp && !negotiate(address, &mut checks) {
        return checks;
    }
    session::examine(url, connect, &mut checks);
    checks
}

/// The first transport of the client, with its port.
fn endpoint(url: &Url, connect: &ConnectArguments) -> Endpoint {
    let first = match &connect.transports {
        Transports::InOrder(list) => list.iter().next().copied(),
        Transports::Auto => None,
    };
    let mut endpoint = first.unwrap_or_else(|| Transport::Tcp.into());
    if let Some(port) = url.port {
        endpoint.port = port;
    }
    endpoint
}

/// Returns whether a login makes sense.
fn negotiate(address: SocketAddr, checks: &mut Vec<Check>) -> bool {
    let subject = format!("negotiation with {address}");
    match probe::negotiate(address, STEP_LIMIT) {
        Answer::Offer(offer) => {
            offered(&subject, &offer, checks);
            true
        }
        Answer::Refused(status) => {
            let code = Found::NegotiationRefused.code();
            let check = Check::refused(subject, code, describe_status(status));
            checks.push(check.mended_by("server: security.min_dialect and max_dialect"));
            false
        }
        Answer::OnlySmb1 => {
            let message = "the server speaks SMB 1 only, which is not safe";
            let check = Check::refused(subject, Found::OnlySmb1.code(), message);
            checks.push(check.mended_by("update the server, or enable SMB 2 or 3 on it"));
            false
        }
        Answer::NotSmb(why) => {
            let message = format!("the program on this port does not speak SMB: {why}");
            let check = Check::refused(subject, Found::NotSmb.code(), message);
            checks.push(check.mended_by(
                "check the port; a server that refuses this address closes connections, too: \
                 read its log",
            ));
            false
        }
    }
}

fn offered(subject: &str, offer: &Offer, checks: &mut Vec<Check>) {
    let Offer {
        dialect,
        requires_signing,
        cipher,
        guid,
        capabilities,
        clock_difference,
        round_trip,
    } = offer;
    let signing = match requires_signing {
        true => "signing required",
        false => "signing possible",
    };
    let cipher = cipher.as_deref().unwrap_or("no encryption");
    let channels = match capabilities.contains(Capabilities::MULTI_CHANNEL) {
        true => ", several connections",
        false => "",
    };
    let milliseconds = round_trip.as_secs_f64() * 1e3;
    let message = format!(
        "dialect {dialect}, {signing}, {cipher}{channels}, server {guid:?}, {milliseconds:.1} ms"
    );
    checks.push(match *dialect < Dialect::SMB_3_0 {
        false => Check::ok(subject, message),
        true => {
            let message = format!("{message}: an old dialect without encryption");
            let check = Check::warning(subject, Found::OldDialect.code(), message);
            check.mended_by("enable SMB 3 on the server")
        }
    });
    checks.push(clock(*clock_difference));
}

fn clock(difference: i64) -> Check {
    let subject = "clock of the server";
    let (seconds, word) = match difference {
        0.. => (difference.unsigned_abs(), "ahead"),
        _ => (difference.unsigned_abs(), "behind"),
    };
    let message = format!("{seconds} s {word}");
    if seconds <= CLOCK_DIFFERENCE_MAX {
        return Check::ok(subject, message);
    }
    let check = Check::warning(subject, Found::ClockSkew.code(), message);
    check.mended_by("synchronize the clocks of both machines (chrony, systemd-timesyncd)")
}

#[cfg(test)]
mod tests {
    use smbeam_server::doctor::Verdict;

    use super::clock;

    #[test]
    fn a_wrong_clock_is_a_warning() {
        assert_eq!(clock(3).message, "3 s ahead");
        assert_eq!(clock(3).verdict, Verdict::Ok);
        let late = clock(-3600);
        assert_eq!(late.message, "3600 s behind");
        assert_eq!(late.code, Some("clock-skew"));
    }
}
