//! A server that wants certificates lets in whom its lists allow, and nobody else.

use std::sync::Arc;

use rcgen::{ExtendedKeyUsagePurpose, date_time_ymd};
use rustls::AlertDescription;
use smbeam_net::tls::{
    AccessLists, CertificateSource, Client, ClientCertificates, ClientPolicy, ClientSettings,
    Error, Fingerprint, Identifier, Server, ServerSettings, Trust,
};

use crate::pki::{Authority, Directory, Issued, parameters};
use crate::wire::{Ends, shake};

/// A company with an authority for its offices, and one for the servers.
struct Company {
    directory: Directory,
    root: Authority,
    office: Authority,
    servers: Authority,
}

impl Company {
    fn new() -> Self {
        let root = Authority::root("Root");
        Self {
            directory: Directory::new(),
            office: root.below("Office"),
            servers: Authority::root("Servers"),
            root,
        }
    }

    fn server(&self, policy: ClientPolicy, allow: &[&str], deny: &[&str]) -> Arc<Server> {
        let list = |texts: &[&str]| -> Vec<Identifier> {
            let entry = |text: &&str| text.parse().expect("an entry");
            texts.iter().map(entry).collect()
        };
        let own = self.servers.server(&["nas.example"]);
        let settings = ServerSettings {
            certificate: CertificateSource::Files(self.directory.files("server", &own)),
            clients: ClientCertificates {
                policy,
                authorities: Some(self.directory.write("clients.pem", &self.root.pem())),
                access: AccessLists {
                    allow: list(allow),
                    deny: list(deny),
                },
            },
        };
        Server::new(&settings).expect("a server")
    }

    fn client(&self, identity: Option<&Issued>) -> Client {
        let settings = ClientSettings {
            trust: Trust::File(self.directory.write("ca.pem", &self.servers.pem())),
            identity: identity.map(|issued| self.directory.files("client", issued)),
            ..ClientSettings::default()
        };
        Client::new(&settings, "nas.example").expect("a client")
    }

    fn connect(&self, server: &Server, identity: Option<&Issued>) -> Ends {
        shake(server, &self.client(identity), "nas.example")
    }

    /// Shows `issued` to a server that requires a certificate.
    fn shows(&self, issued: &Issued, allow: &[&str], deny: &[&str]) -> Ends {
        let server = self.server(ClientPolicy::Required, allow, deny);
        self.connect(&server, Some(issued))
    }
}

#[track_caller]
fn assert_refused(ends: &Ends, alert: AlertDescription, words: &str) {
    assert_eq!(ends.alert_to_client(), alert);
    let text = Error::from_alert(alert.into()).to_string();
    assert!(text.contains(words), "{text}");
}

fn sha256(fingerprint: Fingerprint) -> String {
    format!("sha256:{fingerprint}")
}

#[test]
fn certificates_are_requested_only_if_configured() {
    let company = Company::new();
    let server = company.server(ClientPolicy::No, &["dns:other.example"], &[]);
    let laptop = company.office.client("laptop.example");
    company.connect(&server, None).assert_good();
    company.connect(&server, Some(&laptop)).assert_good();
}

#[test]
fn clients_without_a_certificate_are_refused() {
    let company = Company::new();
    let server = company.server(ClientPolicy::Required, &[], &[]);
    let ends = company.connect(&server, None);
    let words = "it requires a client certificate";
    assert_refused(&ends, AlertDescription::CertificateRequired, words);
    let laptop = company.office.client("laptop.example");
    company.connect(&server, Some(&laptop)).assert_good();
}

#[test]
fn a_certificate_that_is_shown_must_be_good() {
    let company = Company::new();
    let server = company.server(ClientPolicy::Optional, &[], &["dns:lost.example"]);
    company.connect(&server, None).assert_good();
    let laptop = company.office.client("laptop.example");
    company.connect(&server, Some(&laptop)).assert_good();
    let stranger = Authority::root("Root").client("laptop.example");
    let ends = company.connect(&server, Some(&stranger));
    assert!(ends.server.is_err(), "{ends:?}");
    let lost = company.office.client("lost.example");
    let ends = company.connect(&server, Some(&lost));
    let words = "it denies access to this certificate";
    assert_refused(&ends, AlertDescription::AccessDenied, words);
}

#[test]
fn strangers_and_the_expired_are_refused() {
    let company = Company::new();
    let stranger = Authority::root("Other").client("laptop.example");
    let ends = company.shows(&stranger, &[], &[]);
    let words = "it does not know the issuer of this certificate";
    assert_refused(&ends, AlertDescription::UnknownCA, words);
    let mut wanted = parameters(&["laptop.example"]);
    wanted.not_after = date_time_ymd(2021, 2, 3);
    let ends = company.shows(&company.office.issue(&wanted), &[], &[]);
    assert_refused(&ends, AlertDescription::CertificateExpired, "expired");
    let mut wanted = parameters(&["laptop.example"]);
    wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let ends = company.shows(&company.office.issue(&wanted), &[], &[]);
    let words = "not for this purpose";
    assert_refused(&ends, AlertDescription::UnsupportedCertificate, words);
}

#[test]
fn every_kind_of_entry_allows_and_denies() {
    let company = Company::new();
    let laptop = company.office.client("laptop.example");
    let own = sha256(laptop.fingerprint);
    for entry in [
        own.as_str(),
        "issuer:CN=Office, O=Example, C=DE",
        "dns:laptop.example",
    ] {
        company.shows(&laptop, &[entry], &[]).assert_good();
        let ends = company.shows(&laptop, &[], &[entry]);
        assert_eq!(
            ends.alert_to_client(),
            AlertDescription::AccessDenied,
            "{entry}"
        );
        // A client without an entry.
        let other = Authority::client(&company.root, "desk.example");
        let ends = company.shows(&other, &[entry], &[]);
        assert_eq!(
            ends.alert_to_client(),
            AlertDescription::AccessDenied,
            "{entry}"
        );
        company.shows(&other, &[], &[entry]).assert_good();
    }
}

#[test]
fn an_entry_for_an_authority_is_one_for_all_below_it() {
    let company = Company::new();
    let laptop = company.office.client("laptop.example");
    let office = sha256(company.office.fingerprint());
    let root = sha256(company.root.fingerprint());
    for entry in [office.as_str(), &root, "issuer:CN=Root, O=Example, C=DE"] {
        company.shows(&laptop, &[entry], &[]).assert_good();
        let ends = company.shows(&laptop, &[], &[entry]);
        assert_eq!(
            ends.alert_to_client(),
            AlertDescription::AccessDenied,
            "{entry}"
        );
    }
}

#[test]
fn what_denies_wins() {
    let company = Company::new();
    let laptop = company.office.client("laptop.example");
    let own = sha256(laptop.fingerprint);
    let office = "issuer:CN=Office, O=Example, C=DE";
    for (allow, deny) in [(own.as_str(), office), (office, &own), (&own, &own)] {
        let ends = company.shows(&laptop, &[allow], &[deny]);
        assert_eq!(
            ends.alert_to_client(),
            AlertDescription::AccessDenied,
            "{deny}"
        );
    }
    let desk = company.office.client("desk.example");
    company.shows(&desk, &[office], &[&own]).assert_good();
}

/// A client may send any certificate along: they are no secrets. Only those that vouch for it say
/// anything about it, else a stranger would come in by showing a colleague's.
#[test]
fn unrelated_certificates_do_not_grant_access() {
    let company = Company::new();
    let laptop = company.office.client("laptop.example");
    let mut desk = company.office.client("desk.example");
    desk.chain += &laptop.chain;
    let ends = company.shows(&desk, &[&sha256(laptop.fingerprint)], &[]);
    assert_eq!(ends.alert_to_client(), AlertDescription::AccessDenied);
    company
        .shows(&desk, &[&sha256(desk.fingerprint)], &[])
        .assert_good();
}

#[test]
fn certificates_are_not_asked_for_without_an_authority() {
    let company = Company::new();
    let own = company.servers.server(&["nas.example"]);
    let settings = ServerSettings {
        certificate: CertificateSource::Files(company.directory.files("server", &own)),
        clients: ClientCertificates {
            policy: ClientPolicy::Required,
            ..ClientCertificates::default()
        },
    };
    let error = Server::new(&settings).expect_err("refused");
    assert!(matches!(error, Error::NoClientAuthority), "{error:?}");
    assert!(settings.check().is_err());
}
