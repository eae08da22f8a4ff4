//! The server's accounts and its side of logins.

use std::collections::BTreeMap;
use std::sync::Arc;

use auth::{
    Acceptor, AcceptorConfig, Credentials, GuestLogins, Step, TargetNames, UserKind, Users,
};
use proto::login::{Accepted, Account, AccountKind, Authenticate, Authenticated, ConversationId};
use proto::time::Now;
use proto::token::Token;
use wire::Status;

use crate::choices::Choices;

/// The password of every account.
const PASSWORD: &str = "correct horse";

/// Returns the name of a user.
pub(crate) fn user_name(user: usize) -> String {
    format!("user{user}")
}

/// Returns the credentials of a user, with the right or a wrong password.
pub(crate) fn credentials(user: usize, is_right: bool) -> Credentials {
    let password = if is_right { PASSWORD } else { "battery staple" };
    Credentials::with_password(&user_name(user), "SIM", password)
}

/// Returns the accounts of this number of users.
pub(crate) fn accounts(users: usize) -> Arc<AcceptorConfig> {
    let mut users_by_name = Users::default();
    for user in 0..users {
        let account = auth::Account::new(&user_name(user), PASSWORD).expect("a good name");
        assert!(users_by_name.insert(account), "the names differ");
    }
    let names = TargetNames {
        netbios_computer: "SIM".into(),
        netbios_domain: "SIM".into(),
        dns_computer: "sim.example.org".into(),
        dns_domain: "example.org".into(),
    };
    Arc::new(AcceptorConfig {
        names,
        users: Arc::new(users_by_name),
        allows_anonymous: false,
        guests: GuestLogins::Refused,
        mechanisms: Vec::new(),
    })
}

/// The logins in progress on a connection.
pub(crate) struct Logins {
    accounts: Arc<AcceptorConfig>,
    acceptors: BTreeMap<ConversationId, Acceptor>,
    /// Whether every login succeeds as a guest, with any token.
    pub(crate) is_open: bool,
}

impl Logins {
    pub(crate) fn new(accounts: Arc<AcceptorConfig>) -> Self {
        Self {
            accounts,
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
        let accounts = &self.accounts;
        let acceptor = (self.acceptors.entry(leg.conversation))
            .or_insert_with(|| Acceptor::new(accounts.clone()));
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
