//! `--ca-file`, `--pin-sha256` and the like: whom a client believes over QUIC, and who it is.

use std::path::PathBuf;

use clap::Args;
use smbeam_client::tls::{CertificateFiles, ClientSettings, Fingerprint, Trust};

use crate::output::note;

/// Certificates. Only transports with TLS have them.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Certificates (QUIC)")]
pub(crate) struct CertificateArguments {
    /// Believe servers that the authorities in this PEM file vouch for, or whose certificate is in
    /// it, and not those of the system.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pin_sha256", "insecure"])]
    ca_file: Option<PathBuf>,
    /// Believe the server whose certificate has this SHA-256 fingerprint, whatever its name; may
    /// be given several times.
    #[arg(long, value_name = "HEX", conflicts_with = "insecure")]
    pin_sha256: Vec<Fingerprint>,
    /// Believe whoever answers. Only for tests: passwords and files may go to anybody.
    #[arg(long)]
    insecure: bool,
    /// Be content with a certificate for the server's IP address where that is all that is known.
    #[arg(long)]
    allow_address: bool,
    /// Show this certificate, in PEM, to servers that want one.
    #[arg(long, value_name = "FILE")]
    client_cert: Option<PathBuf>,
    /// Its key, in PEM; in the same file if left out.
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
}

impl CertificateArguments {
    /// For the library. Warns, each time, where nobody is verified.
    pub(super) fn settings(&self) -> ClientSettings {
        if self.insecure {
            note(
                &"smbeam: WARNING: --insecure: whoever answers is taken for the server, and may \
                  read and change everything",
            );
        }
        let identity = |certificate: &PathBuf| CertificateFiles {
            certificate: certificate.clone(),
            key: self.client_key.as_ref().unwrap_or(certificate).clone(),
        };
        ClientSettings {
            trust: match &self.ca_file {
                _ if self.insecure => Trust::Anything,
                _ if !self.pin_sha256.is_empty() => Trust::Pinned(self.pin_sha256.clone()),
                Some(file) => Trust::File(file.clone()),
                None => Trust::System,
            },
            allow_address: self.allow_address,
            identity: self.client_cert.as_ref().map(identity),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        certificates: CertificateArguments,
    }

    fn parse(words: &[&str]) -> Result<ClientSettings, String> {
        let line = Line::try_parse_from([&["smbeam"], words].concat());
        line.map(|line| line.certificates.settings())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_system_is_believed_unless_told() {
        let settings = parse(&[]).expect("good");
        assert!(matches!(settings.trust, Trust::System), "{settings:?}");
        assert!(!settings.allow_address && settings.identity.is_none());
        let settings = parse(&["--ca-file", "ca.pem", "--allow-address"]).expect("good");
        assert!(matches!(settings.trust, Trust::File(_)) && settings.allow_address);
        let settings = parse(&["--insecure"]).expect("good");
        assert!(matches!(settings.trust, Trust::Anything), "{settings:?}");
    }

    #[test]
    fn pins_may_be_several() {
        let (one, other) = ("ab".repeat(32), vec!["CD"; 32].join(":"));
        let settings = parse(&["--pin-sha256", &one, "--pin-sha256", &other]).expect("good");
        let Trust::Pinned(pins) = settings.trust else {
            panic!("{settings:?}");
        };
        assert_eq!(
            pins,
            [one.parse().expect("a pin"), other.parse().expect("a pin")]
        );
        let error = parse(&["--pin-sha256", "abcd"]).expect_err("too short");
        assert!(
            error.contains("64 hexadecimal digits, and this 4"),
            "{error}"
        );
    }

    #[test]
    fn only_one_reason_to_believe() {
        let pin = "ab".repeat(32);
        for words in [
            vec!["--insecure", "--ca-file", "ca.pem"],
            vec!["--insecure", "--pin-sha256", &pin],
            vec!["--ca-file", "ca.pem", "--pin-sha256", &pin],
            vec!["--client-key", "client.key"],
        ] {
            assert!(parse(&words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_certificate_may_hold_its_key() {
        let key = |words: &[&str]| {
            let identity = parse(words).expect("good").identity.expect("an identity");
            identity.key.display().to_string()
        };
        assert_eq!(key(&["--client-cert", "a.pem"]), "a.pem");
        assert_eq!(key(&["--client-cert", "a.pem", "--client-key", "b"]), "b");
    }
}
