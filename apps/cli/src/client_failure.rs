//! Converts errors of the client library into failures of a command.

use smbeam_client::{Endpoint, Error, tls};

use crate::exit::{Exit, describe_status, exit_of_status};
use crate::failure::{Failure, plain_reason};

/// Converts an error of the client library into a failure for `subject`, a URL or path.
pub(crate) fn failure_of(subject: &impl ToString, error: &Error) -> Failure {
    let exit = match error {
        Error::Resolve(..)
        | Error::Connect(..)
        | Error::NotSmb(..)
        | Error::Unreachable { .. }
        | Error::Refused { .. }
        | Error::Untrusted { .. } => Exit::Unreachable,
        Error::Certificate { error, .. } => exit_of_certificate(error),
        Error::Login { .. } => Exit::LoginRefused,
        Error::Lost { .. } | Error::TimedOut { .. } | Error::Protocol { .. } => Exit::Lost,
        Error::InvalidName(..) => Exit::BadName,
        Error::Canceled { .. } => Exit::Interrupted,
        Error::Local { error, .. } => return Failure::local(subject, error),
        Error::Status { status, .. } => exit_of_status(*status),
        _ => Exit::Failed,
    };
    let reason = match error {
        Error::Resolve(host, error) => format!("cannot resolve the host name {host}: {error}"),
        Error::Connect(address, error) => {
            format!("cannot connect to {address}: {}", plain_reason(error))
        }
        Error::Unreachable { tried, .. } => transports_reason(tried),
        Error::Refused { status, .. } => {
            format!(
                "the server refused the connection: {}",
                describe_status(*status)
            )
        }
        Error::Untrusted { why, .. } => format!("cannot trust the server: {why}"),
        Error::Certificate { error, .. } => certificate_reason(error),
        Error::Login { status, .. } => {
            format!("the server refused the login: {}", describe_status(*status))
        }
        Error::Status { status, .. } => describe_status(*status),
        Error::Lost { reason, .. } => format!("the connection was lost: {reason}"),
        Error::TimedOut { .. } => "the server did not answer in time (see --timeout)".into(),
        Error::Protocol { why, .. } => format!("the server sent an invalid response: {why}"),
        Error::InvalidName(_, why) => (*why).into(),
        other => other.to_string(),
    };
    Failure::new(exit, subject.to_string(), reason)
}

/// Lists the transports that were tried, each with its error.
fn transports_reason(tried: &[(Endpoint, Error)]) -> String {
    let each = tried.iter().map(|(endpoint, error)| match error {
        Error::Connect(address, error) => {
            let (ip, reason) = (address.ip(), plain_reason(error));
            format!("{ip} over {endpoint}: {reason}")
        }
        other => format!("{endpoint}: {other}"),
    });
    let each: Vec<String> = each.collect();
    format!(
        "cannot reach the server over any transport: {}",
        each.join("; ")
    )
}

/// Invalid options or certificate files are a usage error. A server that cannot be verified is
/// unreachable.
fn exit_of_certificate(error: &tls::Error) -> Exit {
    match error {
        tls::Error::RefusedByPeer(_) => Exit::Unreachable,
        error if error.is_distrust() => Exit::Unreachable,
        _ => Exit::Usage,
    }
}

/// The error, with the option that can solve it.
fn certificate_reason(error: &tls::Error) -> String {
    let hint = match error {
        tls::Error::AddressAsName(_) => " (use --allow-address or --pin-sha256)",
        tls::Error::UnknownAuthority { .. } => "; to trust it, use --ca-file or --pin-sha256",
        tls::Error::NoSystemRoots(_) => ": use --ca-file or --pin-sha256",
        tls::Error::RefusedByPeer(alert) if u8::from(*alert) == CERTIFICATE_REQUIRED => {
            ": give one with --client-cert"
        }
        _ => "",
    };
    format!("{error}{hint}")
}

/// The TLS alert certificate_required. RFC 8446 6.2
const CERTIFICATE_REQUIRED: u8 = 116;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_error_has_an_exit_code_and_a_hint() {
        let address = tls::Error::AddressAsName([192, 0, 2, 7].into());
        assert_eq!(exit_of_certificate(&address), Exit::Usage);
        assert!(certificate_reason(&address).ends_with("(use --allow-address or --pin-sha256)"));
        let required = tls::Error::from_alert(CERTIFICATE_REQUIRED);
        assert_eq!(exit_of_certificate(&required), Exit::Unreachable);
        assert!(
            certificate_reason(&required).ends_with(": give one with --client-cert"),
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
