//! A server without a certificate makes a self-signed one, once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Barrier};
use std::thread;

use smbeam_net::tls::{
    CertificateSource, Client, ClientCertificates, ClientSettings, Server, ServerSettings, Trust,
};

use crate::pki::Directory;
use crate::wire::shake;

fn settings(directory: &Directory, names: &[&str]) -> ServerSettings {
    ServerSettings {
        certificate: CertificateSource::SelfSigned {
            directory: directory.path("state/smbeam"),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        },
        clients: ClientCertificates::default(),
    }
}

fn start(directory: &Directory, names: &[&str]) -> Arc<Server> {
    Server::new(&settings(directory, names)).expect("a server")
}

#[test]
fn it_is_made_once_and_kept() {
    let directory = Directory::new();
    let first = start(&directory, &["nas", "nas.example"]);
    assert!(first.is_self_signed());
    let path = directory.path("state/smbeam/quic-self-signed.pem");
    let text = fs::read(&path).expect("a file");
    assert_eq!(
        fs::metadata(&path).expect("a file").permissions().mode() & 0o777,
        0o600
    );
    let parent = directory.path("state/smbeam");
    assert_eq!(
        fs::metadata(&parent)
            .expect("a directory")
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    // Other names, and the same certificate: clients have pinned it.
    let second = start(&directory, &["nas", "other.example"]);
    assert_eq!(first.fingerprint(), second.fingerprint());
    assert_eq!(fs::read(&path).expect("a file"), text);
    assert_eq!(
        fs::read_dir(&parent).expect("a directory").count(),
        1,
        "no drafts are left"
    );
}

#[test]
fn servers_that_start_together_agree_on_one() {
    let directory = Directory::new();
    let begin = Barrier::new(8);
    let fingerprints: Vec<_> = thread::scope(|scope| {
        let one = || {
            begin.wait();
            start(&directory, &["nas"]).fingerprint()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|one| one.expect("a server")).collect()
    });
    assert!(
        fingerprints.iter().all(|one| *one == fingerprints[0]),
        "{fingerprints:?}"
    );
}

#[test]
fn each_server_has_its_own() {
    let (one, other) = (Directory::new(), Directory::new());
    let (one, other) = (start(&one, &["nas"]), start(&other, &["nas"]));
    assert_ne!(one.fingerprint(), other.fingerprint());
}

#[test]
fn it_is_good_for_its_names_and_by_its_fingerprint() {
    let directory = Directory::new();
    let server = start(
        &directory,
        &["nas", "nas.example", "192.0.2.7", "not a name"],
    );
    let path = directory.path("state/smbeam/quic-self-signed.pem");
    let client = |trust: Trust, name: &str| {
        let settings = ClientSettings {
            trust,
            allow_address: true,
            identity: None,
        };
        let client = Client::new(&settings, name).expect("a client");
        shake(&server, &client, name)
    };
    for name in ["nas", "nas.example", "192.0.2.7"] {
        client(Trust::File(path.clone()), name).assert_good();
    }
    assert!(client(Trust::File(path), "other.example").client.is_err());
    client(Trust::Pinned(vec![server.fingerprint()]), "other.example").assert_good();
}

#[test]
fn a_check_makes_nothing() {
    let directory = Directory::new();
    settings(&directory, &["nas"])
        .check()
        .expect("good settings");
    assert!(!directory.path("state").exists());
}
