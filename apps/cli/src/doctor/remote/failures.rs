//! Errors of the client as checks with codes and remedies.

use smbeam_client::{Error, Status, tls};
use smbeam_server::doctor::{Check, Diagnosis};
use smbeam_server::{Reason as _, RefusedLogin};

use super::super::codes::Found;
use crate::client_failure::failure_of;

/// The step that fails with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Login,
    Share,
    Path,
}

/// The refusal of a step.
pub(super) fn check(step: Step, subject: &str, error: &Error) -> Check {
    let (code, remedy) = reason(step, error);
    let failure = failure_of(&subject, error);
    let check = Check::refused(subject, code, failure.reason);
    match remedy {
        "" => check,
        remedy => check.mended_by(remedy),
    }
}

fn reason(step: Step, error: &Error) -> (&'static str, &'static str) {
    match error {
        Error::Login { status, .. } => login(*status),
        Error::Certificate { error, .. } => certificate(error),
        Error::Refused { .. } => (
            Found::NegotiationRefused.code(),
            "no common dialect: --max-protocol and --dialect here, min_dialect on the server",
        ),
        Error::Untrusted { .. } => (
            Found::ProtectionMissing.code(),
            "leave --sign and --encrypt out, or enable signing and encryption on the server",
        ),
        Error::Connect(..) | Error::Unreachable { .. } => (
            Found::PortSilent.code(),
            "open the port in firewalls: 443/udp for QUIC, 445/tcp for direct TCP",
        ),
        Error::NotSmb(..) => (Found::NotSmb.code(), "check the port"),
        Error::Lost { .. } | Error::TimedOut { .. } => (
            Found::ConnectionLost.code(),
            "read the log of the server for `disconnecting` and its code",
        ),
        Error::Status { status, .. } => status_reason(step, *status),
        _ => (Found::ServerError.code(), ""),
    }
}

fn login(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::ACCOUNT_DISABLED => (
            RefusedLogin::Disabled.code(),
            "server: smbeam user enable NAME",
        ),
        Status::ACCOUNT_LOCKED_OUT => (
            RefusedLogin::LockedOut.code(),
            "wait (security.lockout_duration_ms), and correct saved passwords",
        ),
        Status::REQUEST_NOT_ACCEPTED => (
            RefusedLogin::TooManyFailures.code(),
            "wait for some minutes, and correct saved passwords",
        ),
        Status::PASSWORD_EXPIRED | Status::PASSWORD_MUST_CHANGE => (
            Found::PasswordExpired.code(),
            "change the password on the server",
        ),
        Status::ACCESS_DENIED => (
            Found::LoginRefused.code(),
            "guests are refused while signing or encryption is required: log in with a password; \
             the log of the server has the code",
        ),
        _ => (
            Found::LoginRefused.code(),
            "check name and password; the log of the server has the code, or run there: smbeam \
             doctor --as NAME",
        ),
    }
}

fn certificate(error: &tls::Error) -> (&'static str, &'static str) {
    match error {
        tls::Error::Expired { .. } | tls::Error::NotYetValid { .. } => (
            Diagnosis::CertificateDates.code(),
            "renew the certificate of the server; check the clock of this machine",
        ),
        tls::Error::WrongName { .. } | tls::Error::AddressAsName(_) => (
            Diagnosis::CertificateName.code(),
            "use a name of the certificate in the URL, or --pin-sha256",
        ),
        _ => (
            Found::CertificateUntrusted.code(),
            "compare the fingerprint with that of the server, then use --pin-sha256, or --ca-file",
        ),
    }
}

fn status_reason(step: Step, status: Status) -> (&'static str, &'static str) {
    match status {
        Status::BAD_NETWORK_NAME => (
            Diagnosis::ShareUnknown.code(),
            "smbeam shares lists the shares",
        ),
        Status::ACCESS_DENIED if step == Step::Share => (
            Found::ShareRefused.code(),
            "the user is not in the list of the share, or the share wants encryption (--encrypt); \
             the log of the server has the code",
        ),
        Status::ACCESS_DENIED => (
            Found::PathRefused.code(),
            "on the server: smbeam doctor --as NAME --share SHARE --path PATH",
        ),
        Status::OBJECT_NAME_NOT_FOUND
        | Status::OBJECT_PATH_NOT_FOUND
        | Status::NO_SUCH_FILE
        | Status::OBJECT_NAME_INVALID => (
            Diagnosis::PathMissing.code(),
            "smbeam ls shows the names in the directory above",
        ),
        Status::NOT_A_DIRECTORY => (Diagnosis::PathNotDirectory.code(), ""),
        Status::SHARING_VIOLATION | Status::FILE_LOCK_CONFLICT | Status::DELETE_PENDING => (
            Found::PathInUse.code(),
            "on the server, smbeam status shows the client that has the file open",
        ),
        _ => (Found::ServerError.code(), ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_codes() {
        let denied = Status::ACCESS_DENIED;
        assert_eq!(status_reason(Step::Share, denied).0, "share-refused");
        assert_eq!(status_reason(Step::Path, denied).0, "path-refused");
        assert_eq!(login(Status::LOGON_FAILURE).0, "login-refused");
        assert_eq!(login(Status::ACCOUNT_DISABLED).0, "login-account-disabled");
        let expired = tls::Error::Expired {
            server: "nas".into(),
            not_after: "yesterday".into(),
        };
        assert_eq!(certificate(&expired).0, "certificate-expired");
    }
}
