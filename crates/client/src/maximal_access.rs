//! The access rights of the user on a file.

use proto::client::Step;
use wire::access::AccessMask;

use crate::error::Error;
use crate::io::call::Memory;
use crate::open_options::OpenOptions;
use crate::share::{Share, compound_at, first_created};
use crate::symlink::LinkWalk;

impl Share {
    /// Queries the access rights that the user has on a file or directory, from the root of the
    /// share. The open for it has no right to data, so that it breaks no lease of another client.
    /// `None` if the server does not support the query.
    ///
    /// # Errors
    /// The file does not exist, or the user may not access it.
    pub async fn maximal_access_of(&self, path: &str) -> Result<Option<AccessMask>, Error> {
        let options = OpenOptions::new().access(AccessMask::FILE_READ_ATTRIBUTES);
        let mut walk = LinkWalk::new(self.place(), path)?;
        loop {
            let mut steps = compound_at(walk.path().to_owned(), &options, Vec::new());
            for step in &mut steps {
                if let Step::Create(create) = step {
                    create.query_maximal_access = true;
                }
            }
            let done = self.start(steps, Memory::None).await;
            let replies = done.replies.map_err(|cause| cause.of("query", path))?;
            match first_created(replies.into_iter().next()) {
                Ok(created) => return Ok(created.maximal_access),
                Err(cause) if walk.follow(&cause) => {}
                Err(cause) => return Err(cause.of("look at", path)),
            }
        }
    }
}
