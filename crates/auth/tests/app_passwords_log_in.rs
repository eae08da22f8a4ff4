//! A client logs in with the main password of an account or with one of its app passwords, and
//! receives the rights of the password.

mod exchange;

use std::sync::Arc;

use exchange::{NOW, accepted, config, refused};
use smbeam_auth::{
    APP_PASSWORDS_MAX, AcceptorConfig, Account, AppPassword, AppPasswordRights, Credentials,
    FileTime, Framing, Initiator, NtHash, Refusal, Users,
};

fn app_password(name: &str, expires: Option<FileTime>) -> AppPassword {
    AppPassword {
        rights: AppPasswordRights {
            name: name.into(),
            shares: vec!["photos".into()],
            read_only: true,
        },
        nt_hash: NtHash::from_password(&format!("password of {name}")),
        expires,
    }
}

fn server(app_passwords: Vec<AppPassword>) -> Arc<AcceptorConfig> {
    let mut users = Users::default();
    users.insert(Account {
        app_passwords,
        ..Account::new("alice", "secret").expect("a good name")
    });
    let AcceptorConfig {
        names,
        allows_anonymous,
        guests,
        ..
    } = &*config();
    Arc::new(AcceptorConfig {
        names: names.clone(),
        users: Arc::new(users),
        allows_anonymous: *allows_anonymous,
        guests: *guests,
        mechanisms: Vec::new(),
    })
}

fn credentials(password: &str) -> Credentials {
    Credentials::with_password("alice", "WORKGROUP", password)
}

/// The name of the app password of a login.
fn log_in(server: &Arc<AcceptorConfig>, password: &str) -> Option<AppPasswordRights> {
    let client = Initiator::new(credentials(password), "cifs/files", Framing::Spnego);
    let (key, accepted) = accepted(client, server);
    assert_eq!(*key.expect("a key"), *accepted.session_key);
    assert_eq!(accepted.user.name, "alice");
    accepted.user.app_password
}

#[test]
fn every_password_of_an_account_logs_in_with_its_rights() {
    let names: Vec<String> = (0..APP_PASSWORDS_MAX)
        .map(|number| number.to_string())
        .collect();
    let passwords = names.iter().map(|name| app_password(name, None)).collect();
    let server = server(passwords);
    assert_eq!(log_in(&server, "secret"), None);
    for name in &names {
        let rights = log_in(&server, &format!("password of {name}")).expect("an app password");
        assert_eq!(rights, app_password(name, None).rights);
    }
    for wrong in ["dummy", "password of 99", ""] {
        assert_eq!(refused(credentials(wrong), &server), Refusal::BadPassword);
    }
}

#[test]
fn an_expired_app_password_is_refused() {
    let server = server(vec![
        app_password("old", Some(NOW)),
        app_password("young", Some(FileTime(NOW.0 + 1))),
    ]);
    let refusal = refused(credentials("password of old"), &server);
    assert_eq!(refusal, Refusal::Expired);
    assert!(!refusal.is_failed_guess());
    assert!(log_in(&server, "password of young").is_some());
    assert_eq!(log_in(&server, "secret"), None);
}
