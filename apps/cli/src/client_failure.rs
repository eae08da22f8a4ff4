//! Failures of a command from the errors of the client library.

use smbeam_client::{Endpoint, Error, tls};

use crate::exit::{Exit, describe_status, exit_of_status};
use crate::failure::{Failure, plain_reason};

/// What the library says of `subject`.
pub(crate) fn failure_of(subject: &impl ToString, error: &Error) -> Failure {
    let exit = match error {
        Error::Resolve(..)
        | Error::Connect(..)
        | Error::Unreachable { .. }
        | Error::Refused { .. }
        | Error::Untrusted { .. } => Exit::Unreachable,
        Error::Certificate { error, .. } => exit_of_certificate(error),
        Error::Login { .. } => Exit::LoginRefused,
        Error::Lost { .. } | Error::TimedOut { .. } | Error::Protocol { .. } => Exit::Lost,
        Error::InvalidName(..) => Exit::BadName,
        Error::Cancelled { .. } => Exit::Interrupted,
        Error::Local { error, .. } => return Failure::local(subject, error),
        Error::Status { status, .. } => exit_of_status(*status),
        _ => Exit::Failed,
    };
    let reason = match error {
        Error::Resolve(host, error) => format!("cannot find the host {host}: {error}"),
        Error::Connect(address, error) => {
            format!("cannot connect to {address}: {}", plain_reason(error))
        }
        Error::Unreachable { tried, .. } => transports_reason(tried),
        Error::Refused { status, .. } => {
            format!(
                "the server refuses the connection: {}",
                describe_status(*status)
            )
        }
        Error::Untrusted { why, .. } => format!("the server is not to be trusted: {why}"),
        Error::Certificate { error, .. } => certificate_reason(error),
        Error::Login { status, .. } => {
            format!("the login is refused: {}", describe_status(*status))
        }
        Error::Status { status, .. } => describe_status(*status),
        Error::Lost { reason, .. } => format!("the connection is lost: {reason}"),
        Error::TimedOut { .. } => "the server does not answer in time".into(),
        Error::Protocol { why, .. } => format!("the server's answer is wrong: {why}"),
        Error::InvalidName(_, why) => (*why).into(),
        other => other.to_string(),
    };
    Failure::new(exit, subject.to_string(), reason)
}

/// What became of each transport, the last one too.
fn transports_reason(tried: &[(Endpoint, Error)]) -> String {
    let each = tried.iter().map(|(endpoint, error)| match error {
        Error::Connect(address, error) => {
            let (ip, reason) = (address.ip(), plain_reason(error));
            format!("{ip} by {endpoint}: {reason}")
        }
        other => format!("{endpoint}: {other}"),
    });
    let each: Vec<String> = each.collect();
    format!("no transport leads to the server: {}", each.join("; "))
}

/// A mistake of the command line or its files, or a server that is not what it should be.
fn exit_of_certificate(error: &tls::Error) -> Exit {
    match error {
        tls::Error::RefusedByPeer(_) => Exit::Unreachable,
        error if error.is_distrust() => Exit::Unreachable,
        _ => Exit::Usage,
    }
}

/// What is wrong, and which option may help.
fn certificate_reason(error: &tls::Error) -> String {
    let hint = match error {
        tls::Error::AddressAsName(_) => " (--allow-address, --pin-sha256)",
        tls::Error::UnknownAuthority { .. } => {
            "; if it should be believed: --ca-file or --pin-sha256"
        }
        tls::Error::NoSystemRoots(_) => ": --ca-file or --pin-sha256",
        tls::Error::RefusedByPeer(alert) if u8::from(*alert) == CERTIFICATE_REQUIRED => {
            ": --client-cert"
        }
        _ => "",
    };
    format!("{error}{hint}")
}

/// The alert of that name. RFC 8446 6.2
const CERTIFICATE_REQUIRED: u8 = 116;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_has_a_code_and_a_way_out() {
        let address = tls::Error::AddressAsName([192, 0, 2, 7].into());
        assert_eq!(exit_of_certificate(&address), Exit::Usage);
        assert!(certificate_reason(&address).ends_with("(--allow-address, --pin-sha256)"));
        let required = tls::Error::from_alert(CERTIFICATE_REQUIRED);
        assert_eq!(exit_of_certificate(&required), Exit::Unreachable);
        assert!(
            certificate_reason(&required).ends_with(": --client-cert"),
            "{}",
            certificate_reason(&required)
        );
        let expired = tls::Error::Expired {
            server: "nas".into(),
            not_after: "yesterday".into(),
        };
        assert_eq!(exit_of_certificate(&expired), Exit::Unreachable);
    }
}
