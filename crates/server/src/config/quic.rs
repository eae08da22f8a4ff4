//! `[quic]`: certificates of the server and of its clients, and parameters of QUIC connections.

use std::path::{Path, PathBuf};
use std::time::Duration;

use net::quic::{Congestion, Settings, kib_to_bytes};
use net::tls::{
    AccessLists, CertificateFiles, CertificateSource, ClientCertificates, ClientPolicy, Identifier,
    ServerSettings,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Check, Config, ConfigError, unplaced};
use crate::host_name::host_name;

/// Most entries of `allow` or `deny`. More clients need a separate certificate authority.
const MAX_ENTRIES: usize = 65_536;

/// The former name of `state_directory`, which is still valid.
pub(super) const FORMER_KEY: &str = "state_folder";

/// The section `[quic]` of the configuration: certificates of the server and of its clients, and
/// parameters of QUIC connections.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuicSection {
    /// PEM file with the server's certificate and its chain of authorities. `None` stands for a
    /// self-signed certificate, which the server makes.
    #[schemars(with = "Option<PathBuf>")]
    pub certificate: Option<Spanned<PathBuf>>,
    /// PEM file with the private key of the certificate. `None`: the file of the certificate has
    /// the key.
    #[schemars(with = "Option<PathBuf>")]
    pub key: Option<Spanned<PathBuf>>,
    /// Further host names and addresses in the self-signed certificate, beside the name of the
    /// server. Default: empty.
    pub names: Vec<String>,
    /// Directory in which the server stores the self-signed certificate and its key. `None` (the
    /// default) stands for the directory in the environment variable `STATE_DIRECTORY`. Without
    /// that variable, the server uses a state directory of the system or of the user.
    #[serde(alias = "state_folder")]
    pub state_directory: Option<PathBuf>,
    /// Whether a client must present a TLS certificate to connect. `None` (the default): the server
    /// requests no certificate.
    #[schemars(with = "Option<ClientChoice>")]
    pub client_certificates: Option<Spanned<ClientChoice>>,
    /// PEM file with the certificate authorities that issue the certificates of clients. Required
    /// if the server requests certificates of clients; otherwise `None`.
    #[schemars(with = "Option<PathBuf>")]
    pub client_ca: Option<Spanned<PathBuf>>,
    /// Client certificates that may connect, in the text form of [`Identifier`]. Empty (the
    /// default): all clients with a certificate of an authority in `client_ca`.
    #[schemars(with = "Vec<String>")]
    pub allow: Vec<Spanned<String>>,
    /// Client certificates that may not connect, even if `allow` lists them. The text form is that
    /// of [`Identifier`]. Default: empty.
    #[schemars(with = "Vec<String>")]
    pub deny: Vec<Spanned<String>>,
    /// Whether TLS replaces SMB encryption over QUIC if the client agrees. Default: no.
    pub transport_security: TransportSecurity,
    /// Congestion controller of QUIC connections, for the data that the server sends. Default: BBR.
    pub congestion: CongestionChoice,
    /// Flow control window in KiB of a connection: data that the client may send before the server
    /// has read it. Default: 16,384 (16 MiB).
    pub receive_window_kb: u32,
    /// Maximum data in KiB that the server sends on a connection before the client acknowledges it.
    /// Default: 32,768 (32 MiB).
    pub send_window_kb: u32,
    /// Largest datagram, in bytes without the headers of UDP and IP, that path MTU discovery tries.
    /// Default: 8952.
    pub max_datagram: u16,
    /// Seconds without a packet from the client after which the connection ends. Default: 30.
    #[schemars(with = "u64")]
    pub idle_timeout_s: Spanned<u64>,
    /// Seconds without a packet after which the server sends a PING; 0 disables it. Must be less
    /// than `idle_timeout_s`. Default: 10.
    pub keep_alive_s: u64,
    /// Maximum length of a WRITE that the server offers to Samba clients, which may have a slow
    /// QUIC library. Default: the data of one packet.
    pub samba_writes: SambaWrites,
}

/// Default receive window: half of a client's. A peer without a login can make the server buffer
/// this, and about as much again for its own overhead.
const RECEIVE_WINDOW_KB: u32 = 16 << 10;

impl Default for QuicSection {
    fn default() -> Self {
        let settings = Settings::default();
        let seconds = |time: Duration| time.as_secs();
        Self {
            certificate: None,
            key: None,
            names: Vec::new(),
            state_directory: None,
            client_certificates: None,
            client_ca: None,
            allow: Vec::new(),
            deny: Vec::new(),
            transport_security: TransportSecurity::default(),
            congestion: CongestionChoice::default(),
            receive_window_kb: RECEIVE_WINDOW_KB,
            send_window_kb: settings.send_window >> 10,
            max_datagram: settings.max_datagram,
            idle_timeout_s: unplaced(seconds(settings.idle_timeout)),
            keep_alive_s: settings.keep_alive.map_or(0, seconds),
            samba_writes: SambaWrites::default(),
        }
    }
}

/// The value of `quic.client_certificates`: whether clients need a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientChoice {
    /// The server requests no client certificates.
    #[default]
    No,
    /// The server verifies a certificate if the client sends one.
    Optional,
    /// Clients without a valid certificate cannot connect.
    Required,
}

/// The value of `quic.transport_security`: whether TLS replaces SMB encryption over QUIC, by the
/// negotiate context SMB2_TRANSPORT_CAPABILITIES. \[MS-SMB2\] 3.3.5.4
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportSecurity {
    /// SMB encryption applies as configured to all transports.
    #[default]
    #[serde(alias = "seal")]
    Encrypt,
    /// TLS replaces SMB encryption if the client agrees in the NEGOTIATE.
    Accept,
}

/// The value of `quic.congestion`: congestion controller of QUIC connections, for the data that the
/// server sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CongestionChoice {
    /// CUBIC: reacts to loss. RFC 9438
    Cubic,
    /// BBR: sends at the measured delivery rate of the path.
    #[default]
    Bbr,
    /// NewReno: reacts to loss and recovers slowly. RFC 9002 7
    NewReno,
}

/// The value of `quic.samba_writes`: maximum length of a WRITE that the server offers to Samba
/// clients, which may have a slow QUIC library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SambaWrites {
    /// The data of one packet. These clients need hours for larger writes.
    #[default]
    Small,
    /// The largest WRITE that the server offers to all other clients.
    Large,
}

impl QuicSection {
    /// Returns the parameters of QUIC connections that this section sets, in the type that the QUIC
    /// transport takes.
    pub fn settings(&self) -> Settings {
        Settings {
            congestion: match self.congestion {
                CongestionChoice::Cubic => Congestion::Cubic,
                CongestionChoice::Bbr => Congestion::Bbr,
                CongestionChoice::NewReno => Congestion::NewReno,
            },
            receive_window: kib_to_bytes(self.receive_window_kb),
            send_window: kib_to_bytes(self.send_window_kb),
            max_datagram: self.max_datagram,
            idle_timeout: Duration::from_secs(*self.idle_timeout_s.get_ref()),
            keep_alive: (self.keep_alive_s > 0).then(|| Duration::from_secs(self.keep_alive_s)),
            limit_samba_writes: self.samba_writes == SambaWrites::Small,
            ..Settings::default()
        }
    }

    fn client_policy(&self) -> ClientChoice {
        let choice = self.client_certificates.as_ref();
        choice.map_or(ClientChoice::No, |choice| *choice.get_ref())
    }
}

impl Config {
    /// Returns the certificate of the server and the policy for client certificates. Does not read
    /// the files. The result omits entries of `allow` and `deny` that are not valid;
    /// [`Config::parse`] has refused these.
    pub fn tls(&self) -> ServerSettings {
        let quic = &self.quic;
        ServerSettings {
            certificate: match &quic.certificate {
                Some(certificate) => CertificateSource::Files(CertificateFiles {
                    certificate: certificate.get_ref().clone(),
                    key: quic.key.as_ref().unwrap_or(certificate).get_ref().clone(),
                }),
                None => CertificateSource::SelfSigned {
                    directory: match &quic.state_directory {
                        Some(directory) => directory.clone(),
                        None => self.state_directory(),
                    },
                    names: self.own_names(),
                },
            },
            clients: ClientCertificates {
                policy: match quic.client_policy() {
                    ClientChoice::No => ClientPolicy::No,
                    ClientChoice::Optional => ClientPolicy::Optional,
                    ClientChoice::Required => ClientPolicy::Required,
                },
                authorities: quic.client_ca.as_ref().map(|path| path.get_ref().clone()),
                access: AccessLists {
                    allow: entries(&quic.allow),
                    deny: entries(&quic.deny),
                },
            },
        }
    }

    /// The names of this server in a self-signed certificate.
    fn own_names(&self) -> Vec<String> {
        let mut names = vec![host_name()];
        for name in self.server.name.iter().chain(&self.quic.names) {
            if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                names.push(name.clone());
            }
        }
        names
    }
}

fn entries(list: &[Spanned<String>]) -> Vec<Identifier> {
    let parse = |text: &Spanned<String>| text.get_ref().parse().ok();
    list.iter().filter_map(parse).collect()
}

impl Check<'_> {
    pub(super) fn quic(&self, quic: &QuicSection) -> Result<(), ConfigError> {
        if let (None, Some(key)) = (&quic.certificate, &quic.key) {
            let what = "quic.key: quic.certificate is missing";
            return Err(self.error(key, what.to_owned()));
        }
        for (key, path) in [
            ("certificate", &quic.certificate),
            ("key", &quic.key),
            ("client_ca", &quic.client_ca),
        ] {
            if let Some(path) = path {
                self.readable(key, path)?;
            }
        }
        match (&quic.client_certificates, &quic.client_ca) {
            (Some(choice), None) if *choice.get_ref() != ClientChoice::No => {
                let what = "quic.client_certificates: quic.client_ca is missing: \
                            set the certificate authorities of clients";
                return Err(self.error(choice, what.to_owned()));
            }
            _ => {}
        }
        if let Err(error) = quic.settings().checked() {
            // The error may concern one of several keys, or two of them together.
            return Err(self.error(&unplaced(()), format!("quic: {error}")));
        }
        self.entries("allow", &quic.allow)?;
        self.entries("deny", &quic.deny)?;
        match quic.allow.iter().chain(&quic.deny).next() {
            Some(entry) if quic.client_policy() == ClientChoice::No => {
                let what = "quic.allow and quic.deny need quic.client_certificates: \
                            the server requests no certificates";
                Err(self.error(entry, what.to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn readable(&self, key: &str, path: &Spanned<PathBuf>) -> Result<(), ConfigError> {
        let file: &Path = path.get_ref();
        match std::fs::File::open(file) {
            Ok(_) => Ok(()),
            Err(error) => {
                let what = format!("quic.{key}: {}: {error}", file.display());
                Err(self.error(path, what))
            }
        }
    }

    fn entries(&self, key: &str, list: &[Spanned<String>]) -> Result<(), ConfigError> {
        for (index, entry) in list.iter().enumerate() {
            if index == MAX_ENTRIES {
                let what = format!("quic.{key}: more than {MAX_ENTRIES} entries");
                return Err(self.error(entry, what));
            }
            let parsed: Result<Identifier, _> = entry.get_ref().parse();
            parsed.map_err(|error| self.error(entry, format!("quic.{key}: {error}")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        let parsed = Config::parse(Path::new("smbeam.toml"), text);
        parsed.map_err(|error| error.to_string())
    }

    fn error(text: &str) -> String {
        parse(text).expect_err("a bad configuration")
    }

    #[test]
    fn a_server_without_the_section_has_a_self_signed_certificate() {
        let text = "[server]\nname = \"nas\"\n[quic]\nnames = [\"NAS\", \"nas.example\"]\n\
                    state_directory = \"/srv/state\"\n";
        let settings = parse(text).expect("good").tls();
        let CertificateSource::SelfSigned { directory, names } = settings.certificate else {
            panic!("{settings:?}");
        };
        assert_eq!(directory, Path::new("/srv/state"));
        assert_eq!(names, [&host_name(), "nas", "nas.example"]);
        assert_eq!(settings.clients.policy, ClientPolicy::No);
    }

    #[test]
    fn the_former_name_of_a_key_is_accepted() {
        let quic = parse(&format!("[quic]\n{FORMER_KEY} = \"/srv/state\"\n"))
            .expect("good")
            .quic;
        assert_eq!(
            quic.state_directory.as_deref(),
            Some(Path::new("/srv/state"))
        );
    }

    #[test]
    fn the_key_may_be_in_the_file_of_the_certificate() {
        let text = "[quic]\ncertificate = \"/dev/null\"\n";
        let settings = parse(text).expect("good").tls();
        let CertificateSource::Files(files) = settings.certificate else {
            panic!("{settings:?}");
        };
        assert_eq!(files.key, files.certificate);
    }

    #[test]
    fn clients_are_listed() {
        let text = "[quic]\nclient_certificates = \"required\"\nclient_ca = \"/dev/null\"\n\
                    allow = [\"issuer:CN=Lab CA, C=DE\"]\ndeny = [\"dns:old.example\"]\n\
                    transport_security = \"accept\"\ncongestion = \"bbr\"\n\
                    samba_writes = \"large\"\n";
        let config = parse(text).expect("good");
        assert_eq!(config.quic.settings().congestion, Congestion::Bbr);
        assert!(!config.quic.settings().limit_samba_writes);
        assert_eq!(config.quic.transport_security, TransportSecurity::Accept);
        let clients = config.tls().clients;
        assert_eq!(clients.policy, ClientPolicy::Required);
        assert_eq!(clients.access.allow.len(), 1);
        assert_eq!(clients.access.deny[0].to_string(), "dns:old.example");
    }

    #[test]
    fn windows_and_times_are_those_of_the_file() {
        let without = Settings {
            receive_window: 16 << 20,
            ..Settings::default()
        };
        assert_eq!(parse("").expect("good").quic.settings(), without);
        let text = "[quic]\nreceive_window_kb = 1024\nsend_window_kb = 2048\n\
                    max_datagram = 1452\nidle_timeout_s = 60\nkeep_alive_s = 0\n";
        let wanted = Settings {
            receive_window: 1 << 20,
            send_window: 2 << 20,
            max_datagram: 1452,
            idle_timeout: Duration::from_secs(60),
            keep_alive: None,
            ..Settings::default()
        };
        assert_eq!(parse(text).expect("good").quic.settings(), wanted);
        for text in [
            "receive_window_kb = 1",
            "send_window_kb = 4294967295",
            "max_datagram = 576",
            "idle_timeout_s = 0",
            "keep_alive_s = 31",
        ] {
            let error = error(&format!("[quic]\n{text}\n"));
            assert!(error.contains("quic: "), "{error}");
        }
    }

    #[test]
    fn errors_name_the_key_and_the_line() {
        for (text, expected) in [
            (
                "key = \"/dev/null\"",
                "2: quic.key: quic.certificate is missing",
            ),
            (
                "certificate = \"/no/such\"",
                "2: quic.certificate: /no/such: No such file",
            ),
            (
                "client_certificates = \"required\"",
                "2: quic.client_certificates: quic.client_ca is missing",
            ),
            (
                "client_certificates = \"yes\"",
                "2: quic.client_certificates: unknown variant `yes`",
            ),
            (
                "allow = [\"dns:a.example\"]",
                "2: quic.allow and quic.deny need",
            ),
            (
                "client_ca = \"/dev/null\"\nclient_certificates = \"optional\"\n\
                 deny = [\n\"dns:a.example\",\n\"laptop\"]",
                "6: quic.deny: `laptop` does not begin with",
            ),
            (
                "transport_security = \"no\"",
                "2: quic.transport_security: unknown variant `no`",
            ),
            (
                "congestion = \"reno\"",
                "2: quic.congestion: unknown variant `reno`",
            ),
        ] {
            let error = error(&format!("[quic]\n{text}\n"));
            let expected = format!("smbeam.toml, line {expected}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
