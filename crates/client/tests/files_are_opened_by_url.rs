//! `Client::open`: from a URL to an open file.

mod rig;

use rig::{Rig, SHARE, credentials, options};
use smbeam_client::{Client, Error, ErrorKind, OpenOptions, UrlError, Wait};

#[test]
fn a_url_leads_to_a_file() {
    let rig = Rig::new();
    std::fs::create_dir(rig.path("a b")).expect("a directory");
    std::fs::write(rig.path("a b/100%"), "hello").expect("a file");
    let client = Client::new(options()).expect("a client");
    let open = |path: &str| {
        let url = format!("smb://127.0.0.1:{}/{path}", rig.port());
        let options = OpenOptions::new().read(true);
        client.open(&url, &credentials(), &options).wait()
    };
    let file = open(&format!("{SHARE}/a%20b/100%25")).expect("the file");
    assert_eq!(file.len().wait().expect("a length"), 5);
    let missing = open(&format!("{SHARE}/missing")).expect_err("no such file");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let share = open("other/file").expect_err("no such share");
    assert_eq!(share.kind(), ErrorKind::NotFound);
    assert_eq!(
        open("").expect_err("no share").kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn a_wrong_url_is_refused_before_anything_is_sent() {
    let client = Client::new(options()).expect("a client");
    let open = |url| client.open_share(url, &credentials()).wait();
    for (url, expected) in [
        ("http://nas/data", UrlError::Scheme),
        ("data/file", UrlError::Local),
        ("smb://a:b@nas/data", UrlError::Password),
    ] {
        match open(url) {
            Err(Error::InvalidUrl { error, .. }) => assert_eq!(error, expected),
            other => panic!("{url}: {other:?}"),
        }
    }
}
