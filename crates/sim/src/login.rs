//! The server's accounts and its side of logins.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use auth::{
    Acceptor, AcceptorConfig, Credentials, GuestLogins, Step, TargetNames, UserKind, Users,
};
use proto::login::{
    Accepted, Account, AccountKind, AccountsRevision, Authenticate, Authenticated, ConversationId,
};
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

/// The accounts of the server, which may change while it runs.
pub(crate) struct Accounts {
    users: usize,
    current: Mutex<(Arc<AcceptorConfig>, AccountsRevision)>,
}

impl Accounts {
    /// The enabled accounts of this number of users.
    pub(crate) fn new(users: usize) -> Arc<Self> {
        Arc::new(Self {
            users,
            current: Mutex::new((table(users, None), AccountsRevision::default())),
        })
    }

    /// Disables this account, or enables all. Returns the new version of the accounts.
    pub(crate) fn set_disabled(&self, user: Option<usize>) -> AccountsRevision {
        let mut current = self.current.lock().expect("no panic before");
        let (config, revision) = &mut *current;
        *config = table(self.users, user);
        revision.0 += 1;
        *revision
    }

    /// The accounts now, and their version.
    pub(crate) fn current(&self) -> (Arc<AcceptorConfig>, AccountsRevision) {
        self.current.lock().expect("no panic before").clone()
    }
}

/// The accounts of this number of users, of which one may be disabled.
fn table(users: usize, disabled: Option<usize>) -> Arc<AcceptorConfig> {
    let mut users_by_name = Users::default();
    for user in 0..users {
        let mut account = auth::Account::new(&user_name(user), PASSWORD).expect("a good name");
        account.is_disabled = disabled == Some(user);
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
    accounts: Arc<Accounts>,
    acceptors: BTreeMap<ConversationId, (Acceptor, AccountsRevision)>,
    /// Whether every login succeeds as a guest, with any token.
    pub(crate) is_open: bool,
}

impl Logins {
    pub(crate) fn new(accounts: Arc<Accounts>) -> Self {
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
        let (acceptor, revision) = (self.acceptors.entry(leg.conversation)).or_insert_with(|| {
            let (config, revision) = accounts.current();
            (Acceptor::new(config), revision)
        });
        let time = auth::FileTime(now.wall.0);
        match acceptor.step(&leg.token, time, &choices.bytes()) {
            Step::Continue(token) => Authenticated::Continue(token),
            Step::Refused { token, .. } => {
                Authenticated::Refused(Status::LOGON_FAILURE, token.unwrap_or_default())
            }
            Step::Done(accepted) => Authenticated::Accepted(Accepted {
                account: account(&accepted.user, *revision),
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
        app_password: None,
    };
    Accepted {
        token: Vec::new(),
        session_key: Vec::new(),
        account: account(&user, AccountsRevision::default()),
    }
}

fn account(user: &auth::User, revision: AccountsRevision) -> Account {
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
        revision,
        groups: Arc::default(),
        app_password: None,
    }
}
