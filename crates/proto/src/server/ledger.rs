//! The resources that clients use: one sum per user, and one for the process.
//!
//! The core counts connections, opens, pipes, watches, byte-range locks and disconnected opens. The
//! driver counts the bytes of responses. The limits of a user are hard. Responses can wait, so they
//! have shares: a user alone may have almost all of their memory, and several users leave memory
//! for each other.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use spin::Mutex;
use wire::Status;

use crate::login::{Account, AccountKind};
use crate::server::config::Limits;

/// Number of kinds of resources.
const KINDS: usize = 7;
/// A user may have the free memory for responses times this: seven eighths of all if no other user
/// has any.
const SHARE_FACTOR: usize = 7;
/// Number of users in the table from which on the ledger removes users without a session.
const USERS_MIN: usize = 64;

/// A kind of resource that the ledger counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Connections. A connection counts once for each of its sessions.
    Connections,
    /// Open files and directories.
    Opens,
    /// Open pipes.
    Pipes,
    /// Watched directories.
    Watches,
    /// Byte-range locks.
    Locks,
    /// Open files that outlive a lost session. They count as open files too.
    DisconnectedOpens,
    /// Bytes of responses outside of the buffer pool: in the making, queued or being sent.
    ResponseBytes,
}

impl Resource {
    /// All kinds.
    pub const ALL: [Self; KINDS] = [
        Self::Connections,
        Self::Opens,
        Self::Pipes,
        Self::Watches,
        Self::Locks,
        Self::DisconnectedOpens,
        Self::ResponseBytes,
    ];

    /// The status of a request beyond the limit of its user.
    fn status(self) -> Status {
        match self {
            Self::Connections => Status::REQUEST_NOT_ACCEPTED,
            Self::Opens | Self::Pipes => Status::TOO_MANY_OPENED_FILES,
            Self::Watches | Self::Locks | Self::DisconnectedOpens | Self::ResponseBytes => {
                Status::INSUFFICIENT_RESOURCES
            }
        }
    }

    fn limit(self, limits: &Limits) -> usize {
        match self {
            Self::Connections => limits.connections_per_user,
            Self::Opens => limits.opens_per_user,
            Self::Pipes => limits.pipes_per_user,
            Self::Watches => limits.watches_per_user,
            Self::Locks => limits.locks_per_user,
            Self::DisconnectedOpens => limits.disconnected_opens_per_user,
            Self::ResponseBytes => usize::MAX,
        }
    }
}

/// How short the memory of the process is. Each level includes the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shortage {
    /// The process has memory.
    #[default]
    None,
    /// The driver accepts no new connections.
    NewConnections,
    /// The driver handles one request of a connection at a time: further ones wait until the
    /// response is sent.
    Responses,
    /// New opens, pipes, watches and locks fail with INSUFFICIENT_RESOURCES.
    NewObjects,
}

/// The sums of a server and of its users.
#[derive(Debug)]
pub struct Ledger {
    totals: Arc<Totals>,
    users: Mutex<BTreeMap<UserKey, Arc<User>>>,
}

/// The limits and the sums of all users. Each user has a reference to them, and none to the ledger:
/// a cycle of references would never be freed.
#[derive(Debug)]
struct Totals {
    user_limits: Usage,
    /// Bytes of memory for the responses of all users.
    response_bytes: AtomicUsize,
    used: Usage,
    shortage: AtomicU8,
}

/// Guests choose their names, so all of them count as one user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum UserKey {
    Named(String),
    Guest,
    Anonymous,
}

#[derive(Debug, Default)]
struct Usage([AtomicUsize; KINDS]);

/// One user of the server: an account with all its sessions on all connections. All guests count as
/// one user, and so do all anonymous clients.
#[derive(Debug)]
pub struct User {
    totals: Arc<Totals>,
    key: UserKey,
    used: Usage,
    /// Number of refused requests since the last report.
    refused: Usage,
}

/// An amount of a resource that a user has. Dropping it returns the amount.
#[derive(Debug)]
pub struct Charge {
    user: Arc<User>,
    resource: Resource,
    amount: usize,
}

/// Requests of a user that failed because a limit was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Name of the user; `guest` for all guests, `anonymous` for all anonymous clients.
    pub user: String,
    /// The resource with the limit.
    pub resource: Resource,
    /// Number of the requests.
    pub count: usize,
}

impl Usage {
    fn get(&self, resource: Resource) -> usize {
        self.0[resource as usize].load(Ordering::Relaxed)
    }

    /// Adds an amount unless the sum would exceed the limit.
    fn add(&self, resource: Resource, amount: usize, limit: usize) -> bool {
        let fits = |sum: usize| sum.checked_add(amount).filter(|sum| *sum <= limit);
        let sum = &self.0[resource as usize];
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        sum.fetch_update(set, get, fits).is_ok()
    }

    fn subtract(&self, resource: Resource, amount: usize) {
        let before = self.0[resource as usize].fetch_sub(amount, Ordering::Relaxed);
        assert!(before >= amount, "a charge returns its own amount");
    }
}

impl Totals {
    fn response_bytes(&self) -> usize {
        self.response_bytes.load(Ordering::Relaxed)
    }

    fn is_short(&self, level: Shortage) -> bool {
        self.shortage.load(Ordering::Relaxed) >= level as u8
    }
}

impl Ledger {
    /// Makes a ledger without users.
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let totals = Totals {
            user_limits: Usage::default(),
            response_bytes: AtomicUsize::default(),
            used: Usage::default(),
            shortage: AtomicU8::new(0),
        };
        let ledger = Self {
            totals: Arc::new(totals),
            users: Mutex::default(),
        };
        ledger.set_limits(limits);
        Arc::new(ledger)
    }

    /// Changes the limits. A user above a new limit keeps what it has, and gets nothing more.
    pub(crate) fn set_limits(&self, limits: &Limits) {
        let (totals, set) = (&self.totals, Ordering::Relaxed);
        for resource in Resource::ALL {
            totals.user_limits.0[resource as usize].store(resource.limit(limits), set);
        }
        totals.response_bytes.store(limits.response_bytes, set);
    }

    /// Returns the user of an account.
    pub fn user(&self, account: &Account) -> Arc<User> {
        let key = match account.kind {
            AccountKind::Named => UserKey::Named(account.name.clone()),
            AccountKind::Guest => UserKey::Guest,
            AccountKind::Anonymous => UserKey::Anonymous,
        };
        let mut users = self.users.lock();
        if users.len() >= USERS_MIN {
            users.retain(|_, user| Arc::strong_count(user) > 1);
        }
        let user = users.entry(key).or_insert_with_key(|key| {
            Arc::new(User {
                totals: self.totals.clone(),
                key: key.clone(),
                used: Usage::default(),
                refused: Usage::default(),
            })
        });
        user.clone()
    }

    /// Returns the amount of a resource that all users have.
    pub fn used(&self, resource: Resource) -> usize {
        self.totals.used.get(resource)
    }

    /// Returns whether the memory for responses is used up: no further request may run until a
    /// client receives its responses.
    pub fn is_response_memory_full(&self) -> bool {
        self.used(Resource::ResponseBytes) >= self.totals.response_bytes()
    }

    /// Sets the shortage of memory. The driver measures it.
    pub fn set_shortage(&self, shortage: Shortage) {
        self.totals
            .shortage
            .store(shortage as u8, Ordering::Relaxed);
    }

    /// Returns whether the shortage of memory has reached this level.
    pub fn is_short(&self, level: Shortage) -> bool {
        self.totals.is_short(level)
    }

    /// Returns the refused requests since the last call, with one entry for each user and resource.
    pub fn take_refusals(&self) -> Vec<Refusal> {
        let users = self.users.lock();
        let mut refusals = Vec::new();
        for user in users.values() {
            for resource in Resource::ALL {
                let count = user.refused.0[resource as usize].swap(0, Ordering::Relaxed);
                if count > 0 {
                    let user = user.name().to_string();
                    refusals.push(Refusal {
                        user,
                        resource,
                        count,
                    });
                }
            }
        }
        refusals
    }
}

impl User {
    /// Returns the name of the account; `guest` for all guests, `anonymous` for all anonymous
    /// clients.
    pub fn name(&self) -> &str {
        match &self.key {
            UserKey::Named(name) => name,
            UserKey::Guest => "guest",
            UserKey::Anonymous => "anonymous",
        }
    }

    /// Returns the amount of a resource that the user has.
    pub fn used(&self, resource: Resource) -> usize {
        self.used.get(resource)
    }

    /// Counts an amount of a resource.
    ///
    /// # Errors
    /// The status for the request if a limit is reached: REQUEST_NOT_ACCEPTED for a connection,
    /// TOO_MANY_OPENED_FILES for an open or a pipe, otherwise INSUFFICIENT_RESOURCES.
    pub fn charge(self: &Arc<Self>, resource: Resource, amount: usize) -> Result<Charge, Status> {
        let mut charge = self.none_of(resource);
        charge.grow(amount)?;
        Ok(charge)
    }

    /// Returns a charge of zero, which can grow.
    pub fn none_of(self: &Arc<Self>, resource: Resource) -> Charge {
        Charge {
            user: self.clone(),
            resource,
            amount: 0,
        }
    }

    /// Returns whether the share of the user in the memory for responses allows further requests.
    pub fn has_response_share(&self) -> bool {
        let used = self.totals.used.get(Resource::ResponseBytes);
        let free = self.totals.response_bytes().saturating_sub(used);
        self.used(Resource::ResponseBytes) <= free.saturating_mul(SHARE_FACTOR)
    }

    fn check_memory(&self, resource: Resource) -> Result<(), Status> {
        let is_object = !matches!(resource, Resource::Connections | Resource::ResponseBytes);
        match is_object && self.totals.is_short(Shortage::NewObjects) {
            true => Err(Status::INSUFFICIENT_RESOURCES),
            false => Ok(()),
        }
    }
}

impl Charge {
    /// Returns the user that has the amount.
    pub fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Returns the amount.
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Adds to the amount.
    ///
    /// # Errors
    /// As [`User::charge`]; the amount is unchanged then.
    pub fn grow(&mut self, more: usize) -> Result<(), Status> {
        if more == 0 {
            return Ok(());
        }
        let Self { user, resource, .. } = &*self;
        let limit = user.totals.user_limits.get(*resource);
        let is_allowed = user.check_memory(*resource);
        if is_allowed.is_err() || !user.used.add(*resource, more, limit) {
            user.refused.add(*resource, 1, usize::MAX);
            return Err(is_allowed.err().unwrap_or(resource.status()));
        }
        let is_counted = user.totals.used.add(*resource, more, usize::MAX);
        assert!(is_counted, "the sum of all users fits");
        self.amount += more;
        Ok(())
    }

    /// Sets the amount, without regard to limits.
    pub fn set(&mut self, amount: usize) {
        let Self { user, resource, .. } = &*self;
        if let Some(more) = amount.checked_sub(self.amount) {
            for used in [&user.used, &user.totals.used] {
                assert!(used.add(*resource, more, usize::MAX), "the sum fits");
            }
        } else {
            let less = self.amount - amount;
            user.used.subtract(*resource, less);
            user.totals.used.subtract(*resource, less);
        }
        self.amount = amount;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::AccountsRevision;
    use crate::token::Token;

    fn account(name: &str, kind: AccountKind) -> Account {
        Account {
            name: name.to_string(),
            kind,
            token: Arc::new(Token::new(1000, 1000, Vec::new())),
            revision: AccountsRevision::default(),
            groups: Arc::default(),
            app_password: None,
        }
    }

    fn ledger() -> Arc<Ledger> {
        Ledger::new(&Limits {
            opens_per_user: 3,
            connections_per_user: 1,
            response_bytes: 800,
            ..Limits::default()
        })
    }

    fn named(ledger: &Arc<Ledger>, name: &str) -> Arc<User> {
        ledger.user(&account(name, AccountKind::Named))
    }

    #[test]
    fn a_limit_binds_its_user_alone_and_a_dropped_charge_returns_its_amount() {
        let ledger = ledger();
        let (first, second) = (named(&ledger, "a"), named(&ledger, "b"));
        let charges: Vec<_> = (0..3).map(|_| first.charge(Resource::Opens, 1)).collect();
        assert!(charges.iter().all(Result::is_ok));
        let refused = first.charge(Resource::Opens, 1).err();
        assert_eq!(refused, Some(Status::TOO_MANY_OPENED_FILES));
        let of_second = second.charge(Resource::Opens, 3).expect("below its limit");
        assert_eq!(ledger.used(Resource::Opens), 6);
        drop(charges);
        let again = named(&ledger, "a").charge(Resource::Opens, 3);
        assert_eq!((again.is_ok(), ledger.used(Resource::Opens)), (true, 6));
        drop((again, of_second));
        assert_eq!(ledger.used(Resource::Opens), 0);
    }

    /// Bug: a server that was dropped kept the memory of its users. Damage: a program that starts
    /// servers again and again grows. Cause: user and ledger referred to each other.
    #[test]
    fn a_dropped_ledger_frees_its_users() {
        let ledger = ledger();
        let user = Arc::downgrade(&named(&ledger, "a"));
        assert_eq!(user.strong_count(), 1);
        drop(ledger);
        assert_eq!(user.strong_count(), 0);
    }

    #[test]
    fn each_resource_fails_with_the_status_of_windows() {
        let user = named(&ledger(), "a");
        let _connection = user.charge(Resource::Connections, 1).expect("the first");
        let refused = |resource, amount| user.charge(resource, amount).err();
        assert_eq!(
            refused(Resource::Connections, 1),
            Some(Status::REQUEST_NOT_ACCEPTED)
        );
        for resource in [Resource::Watches, Resource::Locks] {
            let status = refused(resource, usize::MAX);
            assert_eq!(status, Some(Status::INSUFFICIENT_RESOURCES));
        }
    }

    #[test]
    fn a_charge_that_cannot_grow_is_unchanged() {
        let ledger = ledger();
        let mut charge = named(&ledger, "a").none_of(Resource::Opens);
        assert!(charge.grow(2).is_ok() && charge.grow(2).is_err());
        assert_eq!((charge.amount(), ledger.used(Resource::Opens)), (2, 2));
        charge.set(1);
        assert_eq!((charge.amount(), ledger.used(Resource::Opens)), (1, 1));
    }

    #[test]
    fn guests_are_one_user_under_any_name_and_no_named_user() {
        let ledger = ledger();
        let guests = ["a", "b"].map(|name| ledger.user(&account(name, AccountKind::Guest)));
        assert!(Arc::ptr_eq(&guests[0], &guests[1]));
        assert!(!Arc::ptr_eq(&guests[0], &named(&ledger, "a")));
        assert!(!Arc::ptr_eq(&guests[0], &named(&ledger, "guest")));
        assert!(Arc::ptr_eq(&named(&ledger, "a"), &named(&ledger, "a")));
    }

    #[test]
    fn shares_bind_only_while_others_need_memory() {
        let ledger = ledger();
        let (greedy, other) = (named(&ledger, "a"), named(&ledger, "b"));
        let mut of_greedy = greedy.none_of(Resource::ResponseBytes);
        of_greedy.set(700);
        assert!(greedy.has_response_share(), "alone it has seven eighths");
        of_greedy.set(701);
        assert!(!greedy.has_response_share() && other.has_response_share());
        of_greedy.set(500);
        let mut of_other = other.none_of(Resource::ResponseBytes);
        of_other.set(290);
        assert!(!greedy.has_response_share() && !other.has_response_share());
        assert!(!ledger.is_response_memory_full());
        of_greedy.set(600);
        assert!(ledger.is_response_memory_full());
        drop(of_other);
        assert!(greedy.has_response_share() && !ledger.is_response_memory_full());
    }

    #[test]
    fn a_shortage_of_memory_refuses_objects_last() {
        let ledger = ledger();
        let user = named(&ledger, "a");
        ledger.set_shortage(Shortage::Responses);
        assert!(ledger.is_short(Shortage::NewConnections));
        assert!(!ledger.is_short(Shortage::NewObjects));
        assert!(user.charge(Resource::Opens, 1).is_ok());
        ledger.set_shortage(Shortage::NewObjects);
        let refused = user.charge(Resource::Opens, 1).err();
        assert_eq!(refused, Some(Status::INSUFFICIENT_RESOURCES));
        assert!(user.charge(Resource::Connections, 1).is_ok());
        ledger.set_shortage(Shortage::None);
        assert!(user.charge(Resource::Opens, 1).is_ok());
    }

    #[test]
    fn refusals_are_reported_once_with_user_and_resource() {
        let ledger = ledger();
        let user = named(&ledger, "a");
        for _ in 0..5 {
            assert!(user.charge(Resource::Opens, 4).is_err());
        }
        let refusal = Refusal {
            user: "a".to_string(),
            resource: Resource::Opens,
            count: 5,
        };
        assert_eq!(ledger.take_refusals(), [refusal]);
        assert!(ledger.take_refusals().is_empty());
    }

    #[test]
    fn users_without_a_session_leave_the_table() {
        let ledger = ledger();
        let first = named(&ledger, "first");
        for number in 0..1000 {
            drop(named(&ledger, &alloc::format!("user-{number}")));
        }
        assert!(ledger.users.lock().len() <= USERS_MIN);
        assert!(Arc::ptr_eq(&first, &named(&ledger, "first")));
    }
}
