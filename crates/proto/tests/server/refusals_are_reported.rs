//! The driver gets a report about each login, and about each refusal with its reason.

use std::sync::Arc;

use proto::report::{AccessDenied, LoginRefusal, NeededAccess, Report, ShareRefusal};
use proto::server::config::{Config, Share};
use wire::Status;
use wire::access::AccessMask;
use wire::dialect::Dialect;

use crate::harness::{Client, Options, Rig, only, share};

/// The name of the account of a report, and the reason of a refused login.
fn login_of(report: &Report) -> (&str, Option<LoginRefusal>) {
    match report {
        Report::LoggedIn(account) => (&account.name, None),
        Report::LoginRefused(account, reason) => (&account.name, Some(*reason)),
        other => panic!("no report of a login: {other:?}"),
    }
}

/// The reports of one login.
fn log_in(change: impl FnOnce(&mut Config), dialect: Dialect, user: &str) -> (Status, Vec<Report>) {
    let mut rig = Rig::new(change);
    let options = Options {
        dialects: vec![dialect],
        ..Options::default()
    };
    let mut client = Client::new(&mut rig, options);
    assert_eq!(client.negotiate(&mut rig).status(), Status::SUCCESS);
    let status = client.log_in(&mut rig, user).status();
    (status, rig.reports)
}

#[test]
fn a_refused_login_is_no_login() {
    let encrypts = |config: &mut Config| config.encryption_required = true;
    let signs = |config: &mut Config| config.signing_required = true;
    let (newest, oldest) = (Dialect::SMB_3_1_1, Dialect::SMB_2_1);
    let denied = Status::ACCESS_DENIED;
    for ((status, reports), expected, refusal) in [
        (log_in(|_| {}, newest, "alice"), Status::SUCCESS, None),
        (log_in(|_| {}, newest, "guest"), Status::SUCCESS, None),
        (log_in(encrypts, newest, "alice"), Status::SUCCESS, None),
        (
            log_in(encrypts, newest, "guest"),
            denied,
            Some(LoginRefusal::GuestCannotEncrypt),
        ),
        (
            log_in(encrypts, oldest, "alice"),
            denied,
            Some(LoginRefusal::ClientCannotEncrypt),
        ),
        (
            log_in(signs, newest, "guest"),
            denied,
            Some(LoginRefusal::GuestCannotSign),
        ),
    ] {
        assert_eq!(status, expected);
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert_eq!(login_of(&reports[0]).1, refusal);
    }
    let (_, reports) = log_in(encrypts, oldest, "alice");
    assert_eq!(login_of(&reports[0]).0, "alice");
}

#[test]
fn a_refused_share_is_reported_with_the_reason() {
    let mut rig = Rig::new(|config| {
        let private = Share {
            users: only("alice"),
            ..share("private")
        };
        let secret = Share {
            encryption_required: true,
            guest: true,
            ..share("secret")
        };
        config.shares.extend([private, secret].map(Arc::new));
    });
    for (user, name, expected) in [
        ("bob", "private", ShareRefusal::NotListed),
        ("guest", "files", ShareRefusal::NoGuests),
        ("guest", "secret", ShareRefusal::CannotEncrypt),
    ] {
        let mut client = Client::logged_in(&mut rig, Options::default(), user);
        rig.reports.clear();
        assert_eq!(client.enter(&mut rig, name).status(), Status::ACCESS_DENIED);
        let [Report::ShareRefused(account, found, reason)] = &rig.reports[..] else {
            panic!("one refused share: {:?}", rig.reports);
        };
        assert_eq!((&*account.name, &**found, *reason), (user, name, expected));
    }
}

#[test]
fn a_denied_access_is_reported_with_path_and_rights() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    rig.reports.clear();
    rig.disk.denies_opens = true;
    let create = client.create_message("some file");
    assert_eq!(client.ask(&mut rig, create).status(), Status::ACCESS_DENIED);
    let [Report::AccessDenied(denied)] = &rig.reports[..] else {
        panic!("one denied access: {:?}", rig.reports);
    };
    let AccessDenied {
        account,
        token,
        share,
        needs,
    } = denied;
    assert_eq!(account.name, "alice");
    assert_eq!(*token, account.token);
    assert_eq!(share.0, 0);
    assert_eq!(needs.len(), 1);
    assert_eq!(needs[0].0.as_str(), "some file");
    let NeededAccess::Open(access) = needs[0].1 else {
        panic!("an open: {needs:?}");
    };
    assert!(access.contains(AccessMask::FILE_WRITE_DATA), "{access:?}");
}
