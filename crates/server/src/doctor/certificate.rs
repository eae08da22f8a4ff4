//! Checks of the certificate for QUIC: dates and names.

use net::{Refusal, Transport, tls};
use tls::CertificateSource;

use super::check::Check;
use super::diagnosis::Diagnosis;
use crate::codes::Reason as _;
use crate::config::Config;
use crate::host_name::host_name;

pub(super) fn examine(config: &Config, checks: &mut Vec<Check>) {
    if !config.listens_with(Transport::Quic) {
        return;
    }
    let settings = config.tls();
    let path = settings.certificate_path();
    let subject = format!("certificate {}", path.display());
    if let Err(error) = settings.check() {
        let code = Refusal::Certificate.code();
        return checks.push(Check::refused(subject, code, error));
    }
    let is_self_signed = matches!(settings.certificate, CertificateSource::SelfSigned { .. });
    if is_self_signed && !path.exists() {
        let message = "the server makes a self-signed one at its first start";
        return checks.push(Check::ok(subject, message));
    }
    let chain = match tls::Described::chain(&path) {
        Ok(chain) => chain,
        Err(error) => {
            let code = Refusal::Certificate.code();
            return checks.push(Check::refused(subject, code, error));
        }
    };
    let dates = chain
        .iter()
        .find_map(|certificate| dates(&subject, certificate));
    let own = &chain[0];
    checks.push(dates.unwrap_or_else(|| {
        let (end, fingerprint) = (&own.not_after, own.fingerprint);
        Check::ok(
            &subject,
            format!("valid until {end}, SHA-256 {fingerprint}"),
        )
    }));
    checks.push(names(config, &subject, own));
    if is_self_signed {
        let message = format!(
            "self-signed: clients need --pin-sha256 {}, and Windows needs the certificate",
            own.fingerprint
        );
        checks.push(Check::ok(&subject, message));
    }
}

fn dates(subject: &str, certificate: &tls::Described) -> Option<Check> {
    let code = Diagnosis::CertificateDates.code();
    let message = match certificate.validity {
        tls::Validity::Valid => return None,
        tls::Validity::Expired => format!("expired on {}", certificate.not_after),
        tls::Validity::NotYet => format!("not valid before {}", certificate.not_before),
    };
    let check = Check::refused(subject, code, message);
    Some(check.mended_by("renew the certificate; a running server reads the new file by itself"))
}

fn names(config: &Config, subject: &str, own: &tls::Described) -> Check {
    let host = config.server.name.clone().unwrap_or_else(host_name);
    let has = |name: &str| own.names.iter().any(|known| is_name(known, name));
    let names = own.names.join(", ");
    if has(&host) {
        return Check::ok(subject, format!("for {names}"));
    }
    let message = format!("it is for {names}, and not for {host}: clients refuse other names");
    let check = Check::warning(subject, Diagnosis::CertificateName.code(), message);
    check.mended_by(format!(
        "connect to one of its names, or issue one for {host}"
    ))
}

/// Whether a name of a certificate, which may begin with a wildcard, is that of a host.
fn is_name(of_certificate: &str, host: &str) -> bool {
    if of_certificate.eq_ignore_ascii_case(host) {
        return true;
    }
    let parent = host.split_once('.').map(|(_, parent)| parent);
    let wildcard = of_certificate.strip_prefix("*.");
    matches!((wildcard, parent), (Some(one), Some(other)) if one.eq_ignore_ascii_case(other))
}
