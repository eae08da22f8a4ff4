//! A tree connect, which stays valid when its session is resumed.

use std::sync::{Arc, Mutex};

use wire::TreeId;

use crate::io::slot::lock;

/// A tree connect.
pub(crate) struct TreeState {
    /// Name of the share.
    pub(crate) name: String,
    /// Whether the share requires encryption.
    pub(crate) encrypt: bool,
    id: Mutex<Result<TreeId, Arc<str>>>,
}

impl TreeState {
    pub(crate) fn new(name: &str, encrypt: bool, id: TreeId) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            encrypt,
            id: Mutex::new(Ok(id)),
        })
    }

    /// The number of the tree connect in the current session; an error if the server refused to
    /// connect it again.
    pub(crate) fn id(&self) -> Result<TreeId, Arc<str>> {
        lock(&self.id).clone()
    }

    /// Sets the number in a new session, or the reason why it has none.
    pub(crate) fn set(&self, id: Result<TreeId, Arc<str>>) {
        *lock(&self.id) = id;
    }
}
