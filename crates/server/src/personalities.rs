//! Credentials of users that are registered with the ring of a worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::token::Token;
use ring::Personality;
use wire::Status;

/// Most registered credentials of a worker: the number of users that send large writes at a time.
const MAX_PERSONALITIES: usize = 256;

/// Registered credentials by token. The least recently used ones are removed first. Running writes
/// keep their credentials.
#[derive(Default)]
pub(crate) struct Personalities {
    known: BTreeMap<Arc<Token>, Known>,
    uses: u64,
}

struct Known {
    /// `None` without a ring.
    personality: Option<Personality>,
    last_use: u64,
}

impl Personalities {
    /// The credentials of a token. `register` registers them if they are not known.
    ///
    /// # Errors
    /// Those of `register`.
    pub(crate) fn of(
        &mut self,
        token: &Arc<Token>,
        register: impl FnOnce() -> Result<Option<Personality>, Status>,
    ) -> Result<Option<Personality>, Status> {
        self.uses += 1;
        if let Some(known) = self.known.get_mut(token) {
            known.last_use = self.uses;
            return Ok(known.personality.clone());
        }
        if self.known.len() >= MAX_PERSONALITIES {
            self.forget_oldest();
        }
        let known = Known {
            personality: register()?,
            last_use: self.uses,
        };
        let personality = known.personality.clone();
        self.known.insert(Arc::clone(token), known);
        Ok(personality)
    }

    fn forget_oldest(&mut self) {
        let oldest = self.known.iter().min_by_key(|(_, known)| known.last_use);
        if let Some(token) = oldest.map(|(token, _)| Arc::clone(token)) {
            self.known.remove(&token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(uid: u32) -> Arc<Token> {
        Arc::new(Token::new(uid, uid, Vec::new()))
    }

    #[test]
    fn the_least_recently_used_credentials_are_removed() {
        let mut personalities = Personalities::default();
        let mut is_known = |uid: usize| {
            let mut is_known = true;
            let made = personalities.of(&token(uid as u32), || {
                is_known = false;
                Ok(None)
            });
            made.expect("nothing fails");
            is_known
        };
        for uid in 0..MAX_PERSONALITIES {
            assert!(!is_known(uid));
        }
        assert!(is_known(0));
        assert!(!is_known(MAX_PERSONALITIES));
        assert!(is_known(0) && is_known(2) && !is_known(1));
    }
}
