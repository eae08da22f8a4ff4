//! The log names refused clients, the reason, and invalid files.

use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Once;

use smbeam_net::tls::{
    AccessLists, CertificateFiles, CertificateSource, Client, ClientCertificates, ClientPolicy,
    ClientSettings, Server, ServerSettings, Trust,
};

use crate::pki::{Authority, Directory};
use crate::wire::shake;

thread_local! {
    /// What this thread logged.
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Lines;

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What `run` logs.
fn logged(run: impl FnOnce()) -> String {
    static START: Once = Once::new();
    START.call_once(|| {
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(|| Lines)
            .init();
    });
    LINES.take();
    run();
    String::from_utf8(LINES.take()).expect("text")
}

#[track_caller]
fn assert_said(log: &str, words: &[&str]) {
    let has_all = |line: &str| words.iter().all(|word| line.contains(word));
    assert!(
        log.lines().any(has_all),
        "{words:?} is in no line of\n{log}"
    );
}

fn settings(files: CertificateFiles) -> ServerSettings {
    ServerSettings {
        certificate: CertificateSource::Files(files),
        clients: ClientCertificates::default(),
    }
}

#[test]
fn a_refused_client_is_named_with_the_entry() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let mut wanted = settings(directory.files("server", &root.server(&["nas.example"])));
    wanted.clients = ClientCertificates {
        policy: ClientPolicy::Required,
        authorities: Some(directory.write("clients.pem", &root.pem())),
        access: AccessLists {
            allow: Vec::new(),
            deny: vec!["dns:lost.example".parse().expect("an entry")],
        },
    };
    let server = Server::new(&wanted).expect("a server");
    let lost = root.client("lost.example");
    let stranger = Authority::root("Other").client("laptop.example");
    for (issued, reason) in [
        (
            &lost,
            "reason=the list of what is denied has `dns:lost.example`",
        ),
        (
            &stranger,
            "reason=none of the authorities for clients vouches for it",
        ),
    ] {
        let settings = ClientSettings {
            trust: Trust::Anything,
            identity: Some(directory.files("client", issued)),
            ..ClientSettings::default()
        };
        let client = Client::new(&settings, "nas.example").expect("a client");
        let log = logged(|| {
            let peer = tracing::info_span!("handshake", peer = "192.0.2.7:4711").entered();
            assert!(shake(&server, &client, "nas.example").server.is_err());
            drop(peer);
        });
        let sha256 = format!("sha256={}", issued.fingerprint);
        let words = [
            "WARN",
            "the certificate of a client is refused",
            "subject=CN=holder, O=Example, C=DE",
            &sha256,
            reason,
            "peer=\"192.0.2.7:4711\"",
        ];
        assert_said(&log, &words);
    }
}

#[test]
fn files_that_are_wrong_are_named_once() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let files = directory.files("server", &root.server(&["nas.example"]));
    let server = Server::new(&settings(files.clone())).expect("a server");
    fs::write(&files.key, "nothing\n").expect("a file");
    let log = logged(|| server.reload());
    let key = files.key.display().to_string();
    let words = [
        "WARN",
        "cannot reload the certificate",
        &key,
        "no private key in it",
    ];
    assert_said(&log, &words);
    assert_eq!(logged(|| server.reload()), "", "nothing has changed since");
}

#[test]
fn a_key_that_others_may_read_is_used_with_a_warning() {
    let (directory, root) = (Directory::new(), Authority::root("Root"));
    let files = directory.files("server", &root.server(&["nas.example"]));
    let start = || logged(|| drop(Server::new(&settings(files.clone())).expect("a server")));
    assert_eq!(start(), "");
    for mode in [0o604, 0o644, 0o660] {
        fs::set_permissions(&files.key, Permissions::from_mode(mode)).expect("a mode");
        let (key, mode) = (files.key.display().to_string(), format!("mode=0{mode:o}"));
        assert_said(
            &start(),
            &["WARN", "others may use this private key", &key, &mode],
        );
    }
}

#[test]
fn a_name_that_came_later_is_missed() {
    let directory = Directory::new();
    let start = |names: &[&str]| {
        let settings = ServerSettings {
            certificate: CertificateSource::SelfSigned {
                directory: directory.path("state"),
                names: names.iter().map(|name| (*name).to_owned()).collect(),
            },
            clients: ClientCertificates::default(),
        };
        logged(|| drop(Server::new(&settings).expect("a server")))
    };
    assert_said(
        &start(&["nas"]),
        &["INFO", "made a self-signed certificate", "names=nas"],
    );
    assert_eq!(start(&["NAS"]), "");
    let log = start(&["nas", "nas.example"]);
    assert_said(&log, &["WARN", "lacks names", "missing=nas.example"]);
}

#[test]
fn believing_anything_is_said_each_time() {
    let settings = ClientSettings {
        trust: Trust::Anything,
        ..ClientSettings::default()
    };
    for _ in 0..2 {
        let log = logged(|| drop(Client::new(&settings, "nas.example").expect("a client")));
        assert_said(&log, &["WARN", "INSECURE", "nas.example"]);
    }
}
