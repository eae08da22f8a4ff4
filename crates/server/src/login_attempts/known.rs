//! The prefixes from which the users of accounts have logged in.

use super::key::NameHash;
use crate::client_address::ClientPrefix;
use crate::recent_map::RecentMap;

/// Most prefixes of one account: a user with a password removes only the user's own.
pub(super) const PREFIXES_MAX: usize = 64;

/// The prefixes from which the users of accounts have logged in. Only logins with the right
/// password add one.
#[derive(Debug)]
pub(super) struct KnownPrefixes(RecentMap<NameHash, RecentMap<ClientPrefix, ()>>);

impl Default for KnownPrefixes {
    fn default() -> Self {
        Self(RecentMap::new(auth::USERS_MAX))
    }
}

impl KnownPrefixes {
    pub(super) fn contains(&self, name: NameHash, prefix: ClientPrefix) -> bool {
        let prefixes = self.0.get(&name);
        prefixes.is_some_and(|prefixes| prefixes.get(&prefix).is_some())
    }

    pub(super) fn insert(&mut self, name: NameHash, prefix: ClientPrefix) {
        let new = || RecentMap::new(PREFIXES_MAX);
        let prefixes = self.0.use_or_insert_with(&name, new);
        prefixes.use_or_insert_with(&prefix, || ());
    }
}
