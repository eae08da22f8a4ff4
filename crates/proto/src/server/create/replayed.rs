//! A replayed CREATE after the client lost the response with a channel: it returns the open of the
//! first try.
//! \[MS-SMB2\] 3.3.5.9.10

use alloc::boxed::Box;
use alloc::sync::Arc;

use wire::dialect::Dialect;
use wire::{Flags, Status};

use super::contexts::Asked;
use super::wanted::Wanted;
use super::{Caching, Step, answer};
use crate::file::{FileOp, Metadata, Operation};
use crate::server::context::{Context, Progress, RelatedOpen};
use crate::server::notices::Notices;
use crate::server::open::Open;
use crate::server::replay::{CompletedCreate, Found};

/// An open that was made before.
pub(crate) struct Replayed {
    open: Arc<Open>,
    known: CompletedCreate,
    asked: Asked,
}

/// Looks a CREATE up by the name that its client gave it, and takes the name if it is new.
pub(super) fn begin(
    context: &mut Context<'_>,
    wanted: &mut Wanted,
) -> Result<Option<Progress<Step>>, Status> {
    let named = wanted.asked.create_guid;
    let Some(create_guid) = named.filter(|_| context.dialect >= Dialect::SMB_3_0) else {
        return Ok(None);
    };
    let key = (context.session.origin.client_guid, create_guid);
    let is_replay = context.header.flags.contains(Flags::REPLAY_OPERATION);
    let replays = &context.server.replays;
    let known = match replays.begin(key, context.session.id, is_replay)? {
        Found::Nothing(replay_entry) => {
            wanted.replay_entry = Some(Arc::new(replay_entry));
            return Ok(None);
        }
        Found::Open(known) => known,
    };
    let opens = context.session.opens.lock();
    let open = opens.get(&known.file_id.volatile).cloned();
    drop(opens);
    // It was closed a moment ago, or the tree is another one: the client mixes up its names.
    let open = open.filter(|open| open.tree == context.tree.id);
    let open = open.ok_or(Status::DUPLICATE_OBJECTID)?;
    let operation = FileOp::OnOpen(open.file, Operation::Stat);
    let replayed = Replayed {
        open,
        known,
        asked: wanted.asked,
    };
    let step = Step::Replaying(Box::new(replayed));
    Ok(Some(context.wait(operation, step)))
}

impl Replayed {
    /// The answer of the first try, as things are now. Windows and Samba tell the oplock that the
    /// replay asks for; the one that the open has is the truth.
    pub(super) fn answer(&self, context: &mut Context<'_>, metadata: &Metadata) -> Progress<Step> {
        let Self { open, known, asked } = self;
        let mut notices = Notices::new();
        let (rights, lease) = context
            .server
            .files
            .settle(open.key, open.file, &mut notices);
        open.state.lock().notified_on = None;
        context.post(notices);
        *context.related_open = RelatedOpen::Open(open.id);
        answer(asked, metadata, known, &Caching::new(rights, lease))
    }
}
