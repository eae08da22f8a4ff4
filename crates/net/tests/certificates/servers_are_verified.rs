//! A client believes a server for a reason, or says why not.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd};
use rustls::AlertDescription;
use smbeam_net::tls::{
    CertificateFiles, CertificateSource, Client, ClientCertificates, ClientSettings, Error,
    Fingerprint, Server, ServerSettings, Trust,
};

use crate::pki::{Authority, Directory, Issued, parameters};
use crate::wire::{Ends, shake, shake_with};

fn server(files: CertificateFiles) -> Arc<Server> {
    let settings = ServerSettings {
        certificate: CertificateSource::Files(files),
        clients: ClientCertificates::default(),
    };
    Server::new(&settings).expect("a server")
}

fn trusting(trust: Trust) -> ClientSettings {
    ClientSettings {
        trust,
        ..ClientSettings::default()
    }
}

fn pinning(pin: Fingerprint) -> ClientSettings {
    trusting(Trust::Pinned(vec![pin]))
}

/// Connects as `name` to a server that shows this, believing the authorities of a file.
fn connect(directory: &Directory, issued: &Issued, believed: PathBuf, name: &str) -> Ends {
    let server = server(directory.files("server", issued));
    let client = Client::new(&trusting(Trust::File(believed)), name).expect("a client");
    shake(&server, &client, name)
}

#[track_caller]
fn assert_refused(ends: &Ends, beginning: &str) {
    let text = ends.refusal.as_ref().expect("a refusal");
    assert!(text.is_distrust(), "{text:?}");
    let text = text.to_string();
    assert!(text.starts_with(beginning), "{text}");
}

#[test]
fn an_authority_of_the_file_vouches_for_a_name() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let believed = directory.write("ca.pem", &root.pem());
    let ends = connect(
        &directory,
        &root.server(&["nas.example"]),
        believed,
        "nas.example",
    );
    ends.assert_good();
    assert!(ends.refusal.is_none());
}

#[test]
fn authorities_in_between_are_sent_along() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let believed = directory.write("ca.pem", &root.pem());
    let issued = root.below("Middle").below("Low").server(&["nas.example"]);
    let ends = connect(&directory, &issued, believed, "NAS.example");
    ends.assert_good();
}

#[test]
fn an_unknown_authority_is_not_believed() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let believed = directory.write("ca.pem", &Authority::root("Other").pem());
    let issued = root.server(&["nas.example"]);
    let ends = connect(&directory, &issued, believed, "nas.example");
    assert_eq!(ends.alert_to_server(), AlertDescription::UnknownCA);
    let beginning = format!(
        "no trusted authority has issued the certificate of nas.example, issued by \
         CN=Root, O=Example, C=DE, SHA-256 {}",
        issued.fingerprint
    );
    assert_refused(&ends, &beginning);
}

#[test]
fn a_wrong_name_is_reported_with_the_right_ones() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let believed = directory.write("ca.pem", &root.pem());
    let issued = root.server(&["nas.example", "files.example"]);
    let ends = connect(&directory, &issued, believed, "other.example");
    assert_eq!(ends.alert_to_server(), AlertDescription::BadCertificate);
    let beginning =
        "the certificate is not that of other.example, but of nas.example, files.example";
    assert_refused(&ends, beginning);
}

#[test]
fn certificates_have_their_time() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let believed = directory.write("ca.pem", &root.pem());
    let mut wanted = parameters(&["nas.example"]);
    wanted.not_after = date_time_ymd(2021, 2, 3);
    let ends = connect(
        &directory,
        &root.issue(&wanted),
        believed.clone(),
        "nas.example",
    );
    assert_eq!(ends.alert_to_server(), AlertDescription::CertificateExpired);
    assert_refused(
        &ends,
        "the certificate of nas.example expired on Feb  3 00:00:00 2021",
    );

    let mut wanted = parameters(&["nas.example"]);
    wanted.not_before = date_time_ymd(2089, 2, 3);
    let ends = connect(&directory, &root.issue(&wanted), believed, "nas.example");
    assert_eq!(ends.alert_to_server(), AlertDescription::CertificateExpired);
    assert_refused(
        &ends,
        "the certificate of nas.example is not valid before Feb  3 00:00:00 2089",
    );
}

#[test]
fn a_certificate_for_clients_is_none_for_servers() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let believed = directory.write("ca.pem", &root.pem());
    let mut wanted = parameters(&["nas.example"]);
    wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let ends = connect(&directory, &root.issue(&wanted), believed, "nas.example");
    assert_eq!(
        ends.alert_to_server(),
        AlertDescription::UnsupportedCertificate
    );
    assert_refused(
        &ends,
        "the certificate of nas.example is not trusted: it is not for servers",
    );
}

#[test]
fn a_pin_stands_for_one_certificate_and_no_name() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let issued = root.server(&["nas.example"]);
    let server = server(directory.files("server", &issued));
    for name in ["other.example", "192.0.2.7"] {
        let client = Client::new(&pinning(issued.fingerprint), name).expect("a client");
        shake(&server, &client, name).assert_good();
    }
    // Neither another one of the same authority, nor the authority itself.
    for pin in [
        root.server(&["nas.example"]).fingerprint,
        root.fingerprint(),
    ] {
        let client = Client::new(&pinning(pin), "nas.example").expect("a client");
        let ends = shake(&server, &client, "nas.example");
        assert_eq!(ends.alert_to_server(), AlertDescription::AccessDenied);
        let expected = format!(
            "the certificate of nas.example is not the one that is pinned: its SHA-256 is {}",
            issued.fingerprint
        );
        assert_refused(&ends, &expected);
    }
}

#[test]
fn an_address_is_not_a_name_unless_allowed() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let believed = directory.write("ca.pem", &root.pem());
    let server = server(directory.files("server", &root.server(&["192.0.2.7", "2001:db8::7"])));
    let mut settings = trusting(Trust::File(believed));
    for address in ["192.0.2.7", "2001:db8::7"] {
        let error = Client::new(&settings, address).expect_err("refused");
        assert!(matches!(error, Error::AddressAsName(_)), "{error:?}");
    }
    settings.allow_address = true;
    for address in ["192.0.2.7", "2001:db8::7"] {
        let client = Client::new(&settings, address).expect("a client");
        shake(&server, &client, address).assert_good();
    }
    let client = Client::new(&settings, "192.0.2.8").expect("a client");
    let ends = shake(&server, &client, "192.0.2.8");
    assert!(ends.client.is_err());
    assert_refused(
        &ends,
        "the certificate is not that of 192.0.2.8, but of 192.0.2.7, 2001:db8::7",
    );
}

#[test]
fn trust_in_anything_accepts_every_server() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let server = server(directory.files("server", &root.server(&["nas.example"])));
    let client = Client::new(&trusting(Trust::Anything), "192.0.2.7").expect("a client");
    shake(&server, &client, "192.0.2.7").assert_good();
}

#[test]
fn a_certificate_in_the_file_is_believed_as_it_is() {
    // As `openssl req -x509` makes them: every certificate is one of an authority.
    let (directory, key) = (Directory::new(), KeyPair::generate().expect("a key"));
    let make = |change: fn(&mut CertificateParams)| {
        let mut wanted = parameters(&["nas.example"]);
        wanted.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        change(&mut wanted);
        wanted.self_signed(&key).expect("a certificate").pem()
    };
    let connect = |pem: &str, name: &str| {
        let files = CertificateFiles {
            certificate: directory.write("server.pem", pem),
            key: directory.write("server.key", &key.serialize_pem()),
        };
        let believed = directory.write("ca.pem", pem);
        let client = Client::new(&trusting(Trust::File(believed)), name).expect("a client");
        shake(&server(files), &client, name)
    };
    connect(&make(|_| {}), "nas.example").assert_good();
    let ends = connect(&make(|_| {}), "other.example");
    assert_eq!(ends.alert_to_server(), AlertDescription::BadCertificate);
    assert_refused(
        &ends,
        "the certificate is not that of other.example, but of nas.example",
    );
    let old = make(|wanted| wanted.not_after = date_time_ymd(2021, 2, 3));
    let ends = connect(&old, "nas.example");
    assert_eq!(ends.alert_to_server(), AlertDescription::CertificateExpired);
    assert_refused(
        &ends,
        "the certificate of nas.example expired on Feb  3 00:00:00 2021",
    );
    // Without the file its issuer is unknown.
    let files = directory.files("own", &Authority::root("Root").server(&["nas.example"]));
    let server = server(CertificateFiles {
        certificate: directory.write("server.pem", &make(|_| {})),
        key: directory.write("server.key", &key.serialize_pem()),
    });
    let other = trusting(Trust::File(files.certificate));
    let client = Client::new(&other, "nas.example").expect("a client");
    let ends = shake(&server, &client, "nas.example");
    assert!(ends.client.is_err());
    assert_refused(
        &ends,
        "the certificate of nas.example is not trusted: it is a certificate of an authority",
    );
}

#[test]
fn a_refusal_belongs_to_one_connection() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let issued = root.server(&["nas.example"]);
    let stranger = server(directory.files("stranger", &root.server(&["nas.example"])));
    let server = server(directory.files("server", &issued));
    let client = Client::new(&pinning(issued.fingerprint), "nas.example").expect("a client");
    // Another handshake runs at the same time, and fails.
    let other = client.handshake();
    let ends = shake(&stranger, &client, "nas.example");
    assert_refused(&ends, "the certificate of nas.example is not the one");
    assert!(other.refusal().is_none() && client.handshake().refusal().is_none());
    let ends = shake(&server, &client, "nas.example");
    ends.assert_good();
    assert!(ends.refusal.is_none());
}

#[test]
fn other_protocols_are_turned_away() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let server = server(directory.files("server", &root.server(&["nas.example"])));
    let client = Client::new(&trusting(Trust::Anything), "nas.example").expect("a client");
    let mut config = (*client.handshake().config()).clone();
    config.alpn_protocols = vec![b"h3".to_vec()];
    let ends = shake_with(&server, Arc::new(config), "nas.example");
    assert_eq!(
        ends.alert_to_client(),
        AlertDescription::NoApplicationProtocol
    );
    let text = Error::from_alert(120).to_string();
    assert!(text.contains("does not offer SMB"), "{text}");
}

#[test]
fn invalid_names_and_files_are_reported() {
    let directory = Directory::new();
    let error = |trust: Trust, name: &str| {
        let error = Client::new(&trusting(trust), name).expect_err("a mistake");
        error.to_string()
    };
    let missing = Trust::File(directory.path("none.pem"));
    let expected = format!("{}: No such file", directory.path("none.pem").display());
    assert!(error(missing, "nas.example").starts_with(&expected));
    let empty = directory.write("empty.pem", "nothing\n");
    let expected = format!("{}: no certificate in it", empty.display());
    assert_eq!(error(Trust::File(empty), "nas.example"), expected);
    let believed = directory.write("ca.pem", &Authority::root("Root").pem());
    assert_eq!(
        error(Trust::File(believed), "no name"),
        "`no name` is not a host name"
    );
}
