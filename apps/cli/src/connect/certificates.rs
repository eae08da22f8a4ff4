//! Options for certificates: how the client verifies the server, and its own certificate.

use std::path::PathBuf;

use clap::Args;
use smbeam_client::tls::Fingerprint;
use smbeam_profile::Certificates;

/// Certificates. Only QUIC uses them.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Certificates (QUIC)")]
pub(crate) struct CertificateArguments {
    /// Trust the certificate authorities in this PEM file instead of those of the system.
    /// Certificates of servers in the file are trusted as well.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pin_sha256", "insecure"])]
    ca_file: Option<PathBuf>,
    /// Trust the server certificate with this SHA-256 fingerprint, for any server name. Can be
    /// given several times.
    #[arg(long, value_name = "HEX", conflicts_with = "insecure")]
    pin_sha256: Vec<Fingerprint>,
    /// Do not verify the server. Only for tests: an attacker can get passwords and files.
    #[arg(long)]
    insecure: bool,
    /// If the URL has an IP address, accept a certificate for this address.
    #[arg(long)]
    allow_address: bool,
    /// Present this certificate (PEM) to servers that require a client certificate.
    #[arg(long, value_name = "FILE")]
    client_cert: Option<PathBuf>,
    /// The key of the client certificate (PEM). Without this option, it is in the file of the
    /// certificate.
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
}

impl CertificateArguments {
    /// The certificates for the library.
    pub(super) fn certificates(&self) -> Certificates {
        Certificates {
            ca_file: self.ca_file.clone(),
            pin_sha256: self.pin_sha256.clone(),
            insecure: self.insecure,
            allow_address: self.allow_address,
            client_cert: self.client_cert.clone(),
            client_key: self.client_key.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use smbeam_client::tls::{ClientSettings, Trust};
    use smbeam_profile::ConnectOptions;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        certificates: CertificateArguments,
    }

    fn parse(words: &[&str]) -> Result<ClientSettings, String> {
        let line = Line::try_parse_from([&["smbeam"], words].concat());
        let line = line.map_err(|error| error.to_string())?;
        let options = ConnectOptions {
            certificates: line.certificates.certificates(),
            ..ConnectOptions::default()
        };
        let built = options.build().map_err(|error| error.to_string());
        built.map(|options| options.tls)
    }

    #[test]
    fn the_authorities_of_the_system_are_the_default() {
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
    fn ways_to_verify_exclude_each_other() {
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
