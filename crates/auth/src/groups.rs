//! Groups of accounts, for the lists of users of shares.

use std::collections::BTreeMap;

use wire::upcase::upcased;

/// Maximum number of groups in a user file.
pub const GROUPS_MAX: usize = 1000;

/// A group of accounts. The lists of users of a share name it as `@NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Name of the group, as entered by the administrator. Comparisons ignore the case.
    pub name: String,
    /// Names of the members as in their accounts, by their upper-case names.
    members: BTreeMap<String, String>,
}

impl Group {
    /// Makes a group without members.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            members: BTreeMap::new(),
        }
    }

    /// Returns true if the account of this name, in upper or lower case, is a member.
    pub fn has(&self, account: &str) -> bool {
        self.members.contains_key(&upcased(account))
    }

    /// Lists the names of the members, in the order of their upper-case names.
    pub fn members(&self) -> impl ExactSizeIterator<Item = &str> {
        self.members.values().map(String::as_str)
    }

    /// Adds an account by its name. Returns false if it is a member already.
    pub(crate) fn insert(&mut self, account: &str) -> bool {
        let key = upcased(account);
        self.members.insert(key, account.into()).is_none()
    }

    /// Removes an account. Returns false if it is no member.
    pub(crate) fn remove(&mut self, account: &str) -> bool {
        self.members.remove(&upcased(account)).is_some()
    }
}
