//! A server with a few accounts, and the exchange of tokens between a client and that server.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;

use smbeam_auth::{
    Accepted, Acceptor, AcceptorConfig, Account, Credentials, Entropy, FileTime, Framing,
    GuestLogins, Initiator, InitiatorStep, Refusal, Step, TargetNames, Users,
};

type Key = zeroize::Zeroizing<[u8; 16]>;

/// Some day in 2026.
pub const NOW: FileTime = FileTime(134_000_000_000_000_000);

/// Maximum number of round trips of an exchange.
const LEGS_MAX: u8 = 8;

pub fn config() -> Arc<AcceptorConfig> {
    config_with(false, GuestLogins::Refused)
}

pub fn config_with(allows_anonymous: bool, guests: GuestLogins) -> Arc<AcceptorConfig> {
    let mut users = Users::default();
    let account = |name, password| Account::new(name, password).expect("a good name");
    users.insert(Account {
        unix: Some("alice-unix".into()),
        ..account("Alice", "secret")
    });
    users.insert(Account {
        is_disabled: true,
        ..account("carol", "secret")
    });
    let names = TargetNames {
        netbios_computer: "FILES".into(),
        netbios_domain: "WORKGROUP".into(),
        dns_computer: "files.example.org".into(),
        dns_domain: "example.org".into(),
    };
    Arc::new(AcceptorConfig {
        names,
        users: Arc::new(users),
        allows_anonymous,
        guests,
        mechanisms: Vec::new(),
    })
}

pub fn alice(password: &str) -> Credentials {
    Credentials::with_password("alice", "WORKGROUP", password)
}

pub fn entropy(seed: u8) -> Entropy {
    std::array::from_fn(|index| seed.wrapping_mul(31).wrapping_add(index as u8))
}

/// The client's result: `None` when it did not finish, `Some(None)` for an anonymous client.
type Outcome = Option<Option<Key>>;

/// Runs an exchange to its end. `change` may replace every token of the client before the server
/// receives it; its first argument is the 0-based number of the token.
pub fn run(
    mut client: Initiator,
    mut acceptor: Acceptor,
    seed: u8,
    mut change: impl FnMut(u8, Vec<u8>) -> Vec<u8>,
) -> (Outcome, Step) {
    let mut token = client.start(NOW, &entropy(0)).expect("a first token");
    for leg in 0..LEGS_MAX {
        token = change(leg, token);
        match acceptor.step(&token, NOW, &entropy(seed.wrapping_add(leg))) {
            Step::Continue(reply) => {
                match client.step(&reply, NOW, &entropy(seed.wrapping_add(100 + leg))) {
                    Ok(InitiatorStep::Continue(next)) => token = next,
                    other => panic!("{other:?}"),
                }
            }
            Step::Done(accepted) => {
                let key = match client.step(&accepted.token, NOW, &entropy(0)) {
                    Ok(InitiatorStep::Done(key)) => Some(key),
                    _ => None,
                };
                return (key, Step::Done(accepted));
            }
            refused => return (None, refused),
        }
    }
    panic!("the exchange does not end");
}

pub fn exchange(client: Initiator, config: &Arc<AcceptorConfig>) -> (Outcome, Step) {
    run(client, Acceptor::new(Arc::clone(config)), 1, |_, token| {
        token
    })
}

pub fn accepted(client: Initiator, config: &Arc<AcceptorConfig>) -> (Option<Key>, Accepted) {
    match exchange(client, config) {
        (Some(key), Step::Done(accepted)) => (key, *accepted),
        other => panic!("{other:?}"),
    }
}

pub fn refused(credentials: Credentials, config: &Arc<AcceptorConfig>) -> Refusal {
    let client = Initiator::new(credentials, "cifs/files", Framing::Spnego);
    match exchange(client, config).1 {
        Step::Refused { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}
