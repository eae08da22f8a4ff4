//! Files may change under a server that runs, for better or for worse.

use std::fs;
use std::sync::Arc;

use smbeam_net::tls::{
    CertificateFiles, CertificateSource, Client, ClientCertificates, ClientPolicy, ClientSettings,
    Error, Server, ServerSettings, Trust,
};

use crate::pki::{Authority, Directory, Issued};
use crate::wire::{Ends, shake};

fn settings(files: &CertificateFiles) -> ServerSettings {
    ServerSettings {
        certificate: CertificateSource::Files(files.clone()),
        clients: ClientCertificates::default(),
    }
}

fn sees(server: &Server, issued: &Issued) -> Ends {
    let settings = ClientSettings {
        trust: Trust::Pinned(vec![issued.fingerprint]),
        ..ClientSettings::default()
    };
    let client = Client::new(&settings, "nas.example").expect("a client");
    shake(server, &client, "nas.example")
}

#[test]
fn new_files_are_shown_to_the_next_client() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let (old, new) = (root.server(&["nas.example"]), root.server(&["nas.example"]));
    let server = Server::new(&settings(&directory.files("server", &old))).expect("a server");
    let config = server.config();
    server.reload();
    assert!(
        Arc::ptr_eq(&config, &server.config()),
        "nothing has changed"
    );
    sees(&server, &old).assert_good();
    directory.files("server", &new);
    server.reload();
    sees(&server, &new).assert_good();
    assert_eq!(server.fingerprint(), new.fingerprint);
    assert!(sees(&server, &old).client.is_err());
}

#[test]
fn files_that_are_wrong_change_nothing() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let (old, new) = (root.server(&["nas.example"]), root.server(&["nas.example"]));
    let files = directory.files("server", &old);
    let server = Server::new(&settings(&files)).expect("a server");
    let stays = |why: &str| {
        server.reload();
        assert_eq!(server.fingerprint(), old.fingerprint, "{why}");
        sees(&server, &old).assert_good();
    };
    directory.write("server.pem", &new.chain);
    stays("the key is the old one");
    directory.write("server.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    stays("half a file");
    fs::remove_file(&files.certificate).expect("a file");
    stays("no file");
    directory.files("server", &new);
    server.reload();
    sees(&server, &new).assert_good();
}

#[test]
fn authorities_of_clients_are_read_again() {
    let (directory, root, clients) = (Directory::new(), Authority::root("A"), Authority::root("B"));
    let mut wanted = settings(&directory.files("server", &root.server(&["nas.example"])));
    wanted.clients = ClientCertificates {
        policy: ClientPolicy::Required,
        authorities: Some(directory.write("clients.pem", &root.pem())),
        ..ClientCertificates::default()
    };
    let server = Server::new(&wanted).expect("a server");
    let settings = ClientSettings {
        trust: Trust::Anything,
        identity: Some(directory.files("client", &clients.client("laptop.example"))),
        ..ClientSettings::default()
    };
    let client = Client::new(&settings, "nas.example").expect("a client");
    assert!(shake(&server, &client, "nas.example").server.is_err());
    directory.write("clients.pem", &(root.pem() + &clients.pem()));
    server.reload();
    shake(&server, &client, "nas.example").assert_good();
}

#[test]
fn a_server_does_not_start_with_wrong_files() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let good = directory.files("server", &root.server(&["nas.example"]));
    let other = directory.files("other", &root.server(&["nas.example"]));
    let with = |certificate: &CertificateFiles, key: &CertificateFiles| CertificateFiles {
        certificate: certificate.certificate.clone(),
        key: key.key.clone(),
    };
    let error = |files: &CertificateFiles| {
        let settings = settings(files);
        let error = Server::new(&settings).expect_err("refused");
        let checked = settings.check().expect_err("refused");
        assert_eq!(error.to_string(), checked.to_string());
        error
    };
    settings(&good).check().expect("good files");
    let mixed = error(&with(&good, &other));
    assert!(matches!(mixed, Error::KeyMismatch { .. }), "{mixed}");
    let swapped = CertificateFiles {
        certificate: good.key.clone(),
        key: good.certificate.clone(),
    };
    let swapped = error(&swapped);
    assert!(
        matches!(&swapped, Error::NoCertificate(path) if *path == good.key),
        "{swapped}"
    );
    let no_key = CertificateFiles {
        certificate: good.certificate.clone(),
        key: good.certificate.clone(),
    };
    let no_key = error(&no_key);
    assert!(
        matches!(&no_key, Error::NoKey(path) if *path == good.certificate),
        "{no_key}"
    );
    let broken = directory.write(
        "broken.pem",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    );
    let broken = error(&with(&both_in(&broken), &good));
    assert!(
        matches!(&broken, Error::BadCertificate(_, 1, _)),
        "{broken}"
    );
}

fn both_in(path: &std::path::Path) -> CertificateFiles {
    CertificateFiles {
        certificate: path.to_owned(),
        key: path.to_owned(),
    }
}

#[test]
fn keys_are_read_in_every_usual_form() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let issued = root.server(&["nas.example"]);
    let pkcs8 = issued.key.serialize_der();
    let inner = private_key_of(&pkcs8);
    let sec1 = pem("EC PRIVATE KEY", inner);
    for text in [
        issued.key.serialize_pem(),
        sec1.clone(),
        // As OpenSSL writes it, with the curve before the key.
        format!(
            "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{sec1}"
        ),
        // All in one file.
        format!("{}{sec1}", issued.chain),
    ] {
        let files = CertificateFiles {
            certificate: directory.write("server.pem", &issued.chain),
            key: directory.write("server.key", &text),
        };
        let server = Server::new(&settings(&files)).expect("a server");
        sees(&server, &issued).assert_good();
    }
    let rsa = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("a key");
    let certificate = crate::pki::parameters(&["nas.example"]);
    let certificate = certificate.self_signed(&rsa).expect("a certificate");
    let pkcs1 = pem("RSA PRIVATE KEY", private_key_of(rsa.serialized_der()));
    let files = CertificateFiles {
        certificate: directory.write("server.pem", &certificate.pem()),
        key: directory.write("server.key", &pkcs1),
    };
    Server::new(&settings(&files)).expect("a server");
}

/// What PKCS#8 wraps: version, algorithm, and this.
fn private_key_of(pkcs8: &[u8]) -> &[u8] {
    let content = |bytes: &[u8]| -> (usize, usize) {
        let short = usize::from(bytes[1]);
        match short {
            0x81 => (3, usize::from(bytes[2])),
            0x82 => (4, usize::from(bytes[2]) << 8 | usize::from(bytes[3])),
            _ => (2, short),
        }
    };
    let (head, len) = content(pkcs8);
    let mut rest = &pkcs8[head..head + len];
    for _ in 0..2 {
        let (head, len) = content(rest);
        rest = &rest[head + len..];
    }
    let (head, len) = content(rest);
    &rest[head..head + len]
}

fn pem(kind: &str, der: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {kind}-----\n");
    for line in der.chunks(48) {
        for group in line.chunks(3) {
            let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for ch in 0..4 {
                let index = (bits >> (18 - 6 * ch)) & 63;
                let is_padding = ch > group.len();
                text.push(if is_padding {
                    '='
                } else {
                    char::from(alphabet[index as usize])
                });
            }
        }
        text.push('\n');
    }
    text + &format!("-----END {kind}-----\n")
}
