//! The credentials of users, registered with a worker's ring.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::token::Token;
use ring::Personality;
use wire::Status;

/// Tokens for which a worker keeps credentials registered with its ring: the users that write
/// large requests at one time.
const MAX_PERSONALITIES: usize = 256;

/// Credentials by the tokens that they are of. Those that nobody has asked for for longest go
/// first; what is written under them meanwhile keeps them.
#[derive(Default)]
pub(crate) struct Personalities {
    known: BTreeMap<Arc<Token>, Known>,
    uses: u64,
}

struct Known {
    /// None where there is no ring.
    personality: Option<Personality>,
    last_use: u64,
}

impl Personalities {
    /// Those of a token, which `register` makes where they are not known.
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
    fn who_writes_stays_and_who_does_not_goes() {
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
