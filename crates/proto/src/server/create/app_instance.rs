//! A CREATE of an application instance ends the open that the instance has on another client.
//! \[MS-SMB2\] 3.3.5.9.13

use alloc::sync::Arc;

use wire::Status;
use wire::create_context::{AppInstanceId, AppInstanceVersion, RawContext, find, name};

use crate::effect::Effect;
use crate::server::app_instances::{AppInstance, InstanceOpen};
use crate::server::close;
use crate::server::context::Context;
use crate::server::open::malformed;

/// Reads the contexts of a CREATE; `None` if it names no application instance.
pub(super) fn requested(contexts: &[RawContext<'_>]) -> Result<Option<AppInstance>, Status> {
    let Some(data) = find(contexts, name::APP_INSTANCE_ID) else {
        return Ok(None);
    };
    let AppInstanceId { id } = AppInstanceId::decode(data).map_err(malformed)?;
    let version = find(contexts, name::APP_INSTANCE_VERSION);
    let version = version.map(AppInstanceVersion::decode).transpose();
    let version = version.map_err(malformed)?;
    Ok(Some(AppInstance { id, version }))
}

/// Ends the open of the instance on another client. Only the user that made an open ends it in this
/// way. Fails with FILE_FORCED_CLOSED if the version of the instance there is not lower.
pub(super) fn end_older(context: &mut Context<'_>, instance: AppInstance) -> Result<(), Status> {
    let Some(found) = context.server.app_instances.find(instance.id) else {
        return Ok(());
    };
    let is_elsewhere = found.client != context.session.origin.client_guid
        && found.file.share == context.tree.share.id
        && Arc::ptr_eq(&found.owner, &context.session.user);
    if !is_elsewhere {
        return Ok(());
    }
    if let (Some(wanted), Some(held)) = (instance.version, found.version)
        && wanted <= held
    {
        return Err(Status::FILE_FORCED_CLOSED);
    }
    end(context, &found);
    Ok(())
}

fn end(context: &mut Context<'_>, found: &InstanceOpen) {
    let server = context.server;
    if server.disconnected.lock().give_up(found.id.persistent) {
        context.effects.push(Effect::ArmServerTimer);
        return;
    }
    let session = server.files.session_of(found.key, found.file);
    let session = session.and_then(|id| server.sessions.lock().get(id).cloned());
    let taken = session.and_then(|session| session.opens.lock().remove(&found.id.volatile));
    let session = context.session.clone();
    // Only the request that takes the open out of its table closes it.
    if let Some(open) = taken {
        let closed = (&*open, &*session);
        let abandoned =
            close::abandon(server, context.now, closed, context.op_ids, context.effects);
        abandoned.detach(&open, context.effects);
    }
}
