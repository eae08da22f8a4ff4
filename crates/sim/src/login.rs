//! The server's accounts and its half of logins.

use std::collections::BTreeMap;
use std::sync::Arc;

use auth::{Acceptor, Credentials, Realm, Step, TargetNames, UserKind, Users};
use proto::login::{Accepted, Account, AccountKind, Authenticate, Authenticated, ConversationId};
use proto::time::Now;
use proto::token::Token;
use wire::Status;

use crate::choices::Choices;

/// The password of every account.
const PASSWORD: &str = "correct horse";

/// The name of a user.
pub(crate) fn user_name(user: usize) -> String {
    format!("user{user}")
}

/// What a user logs in with; a wrong password where it is to be wrong.
pub(crate) fn credentials(user: usize, is_right: bool) -> Credentials {
    let password = if is_right { PASSWORD } else { "battery staple" };
    Credentials::with_password(&user_name(user), "SIM", password)
}

/// The realm of so many users.
pub(crate) fn realm(users: usize) -> Arc<Realm> {
    let mut accounts = Users::default();
    for user in 0..users {
        let account = auth::Account::new(&user_name(user), PASSWORD).expect("a good name");
        assert!(accounts.insert(account), "the names differ");
    }
    let names = TargetNames {
        netbios_computer: "SIM".into(),
        netbios_domain: "SIM".into(),
        dns_computer: "sim.example.org".into(),
        dns_domain: "example.org".into(),
    };
    Arc::new(Realm {
        names,
        users: Arc::new(accounts),
        allows_anonymous: false,
        allows_guest: false,
    })
}

/// The logins under way on a connection.
pub(crate) struct Logins {
    realm: Arc<Realm>,
    acceptors: BTreeMap<ConversationId, Acceptor>,
    /// Whether everybody is let in as a guest, whatever the token.
    pub(crate) is_open: bool,
}

impl Logins {
    pub(crate) fn new(realm: Arc<Realm>) -> Self {
        Self {
            realm,
            acceptors: BTreeMap::new(),
            is_open: false,
        }
    }

    pub(crate) fn step(
        &mut self,
        leg: &Authenticate,
        now: Now,
        choices: &mut Choices,
    ) -> Authenticated {
        if self.is_open {
            return Authenticated::Accepted(guest());
        }
        let realm = &self.realm;
        let acceptor = (self.acceptors.entry(leg.conversation))
            .or_insert_with(|| Acceptor::new(realm.clone()));
        let time = auth::FileTime(now.wall.0);
        match acceptor.step(&leg.token, time, &choices.bytes()) {
            Step::Continue(token) => Authenticated::Continue(token),
            Step::Refused { token, .. } => {
                Authenticated::Refused(Status::LOGON_FAILURE, token.unwrap_or_default())
            }
            Step::Done(accepted) => Authenticated::Accepted(Accepted {
                account: account(&accepted.user),
                session_key: accepted.full_session_key.to_vec(),
                token: accepted.token.clone(),
            }),
        }
    }

    pub(crate) fn end(&mut self, conversation: ConversationId) {
        self.acceptors.remove(&conversation);
    }
}

fn guest() -> Accepted {
    let user = auth::User {
        name: "guest".into(),
        domain: String::new(),
        unix: None,
        kind: UserKind::Guest,
    };
    Accepted {
        token: Vec::new(),
        session_key: Vec::new(),
        account: account(&user),
    }
}

fn account(user: &auth::User) -> Account {
    let kind = match user.kind {
        UserKind::Named => AccountKind::Named,
        UserKind::Guest => AccountKind::Guest,
        UserKind::Anonymous => AccountKind::Anonymous,
    };
    let number: u32 = (user.name.strip_prefix("user"))
        .and_then(|number| number.parse().ok())
        .unwrap_or(60_000);
    let token = Token::new(1000 + number, 1000 + number, Vec::new());
    Account {
        name: user.name.clone(),
        kind,
        token: Arc::new(token),
    }
}
