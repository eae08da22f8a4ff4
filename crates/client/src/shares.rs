//! The list of shares, from the server service through a pipe of IPC$. \[MS-SRVS\]

use wire::fsctl::CtlCode;
use wire::rpc::srvsvc::{ALL, INTERFACE, PIPE, ShareEnum, ShareEnumResponse, ShareType};
use wire::rpc::{
    Bind, Body, Fragments, PacketFlags, Pdu, PresentationContext, ResultCode, SyntaxId,
    WINDOWS_FRAGMENT, request_fragments,
};

use crate::error::{Cause, Error};
use crate::file::File;
use crate::file::io::count;
use crate::open_options::OpenOptions;
use crate::session::Session;

/// NetrShareEnum. \[MS-SRVS\] 3.1.4
const SHARE_ENUM: u16 = 15;
/// Information level with name, type and comment. \[MS-SRVS\] 2.2.4.23
const LEVEL: u32 = 1;
/// Largest response in bytes: thousands of shares.
const ANSWER_MAX: usize = 4 << 20;

/// A share in the list of shares of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShareInfo {
    /// Name of the share, without the name of the server.
    pub name: String,
    /// Type of the share: disk, printer or pipe, with the flag SPECIAL for an administrative share.
    pub kind: ShareType,
    /// Comment that the administrator gave to the share, for users.
    pub comment: String,
}

impl Session {
    /// Lists the shares of the server.
    ///
    /// # Errors
    /// The server does not list its shares, or the user may not connect to IPC$.
    pub async fn shares(&self) -> Result<Vec<ShareInfo>, Error> {
        let share = self.share("IPC$").await?;
        let options = OpenOptions::new().read(true).write(true);
        let pipe = share.open(PIPE, &options).await?;
        let listed = list(&pipe, self.host()).await;
        let listed = listed.map_err(|cause| cause.of("list the shares of", self.host()))?;
        // The list is complete, so an error of the close does not matter.
        let _ = pipe.close().await;
        Ok(listed)
    }
}

async fn list(pipe: &File, host: &str) -> Result<Vec<ShareInfo>, Cause> {
    let bind = Bind {
        max_xmit_frag: WINDOWS_FRAGMENT,
        max_recv_frag: WINDOWS_FRAGMENT,
        assoc_group_id: 0,
        contexts: vec![PresentationContext {
            id: 0,
            abstract_syntax: INTERFACE,
            transfer_syntaxes: vec![SyntaxId::NDR32],
        }],
    };
    let bind = Pdu {
        call_id: 1,
        flags: PacketFlags::WHOLE,
        body: Body::Bind(bind),
    };
    let mut conversation = Conversation {
        pipe,
        fragments: Fragments::new(u16::MAX),
    };
    let mut fragment = Vec::new();
    bind.encode(&mut fragment);
    let ack = conversation.ask(fragment).await?;
    match Pdu::decode(&ack)?.body {
        Body::BindAck(ack) if is_accepted(&ack.results) => {}
        _ => return Err(refused("the server does not offer the server service")),
    }
    let call = ShareEnum {
        server_name: Some(format!("\\\\{host}")),
        level: LEVEL,
        preferred_length: ALL,
        resume_handle: Some(0),
    };
    let stub = conversation.call(SHARE_ENUM, &call.encode()).await?;
    let response = ShareEnumResponse::decode(&stub)?;
    let shares = response.shares.filter(|_| response.status.0 == 0);
    let shares = shares.ok_or_else(|| refused("the server refuses to list its shares"))?;
    let info = |share: wire::rpc::srvsvc::ShareInfo| ShareInfo {
        name: share.name,
        kind: share.share_type,
        comment: share.comment,
    };
    Ok(shares.into_iter().map(info).collect())
}

fn is_accepted(results: &[wire::rpc::ContextResult]) -> bool {
    let first = results.first();
    first.is_some_and(|first| first.result == ResultCode::ACCEPTANCE)
}

fn refused(why: &str) -> Cause {
    Cause::Malformed(why.to_owned())
}

/// An RPC conversation through a pipe, one call at a time.
struct Conversation<'a> {
    pipe: &'a File,
    fragments: Fragments,
}

impl Conversation<'_> {
    /// Sends a fragment, and returns the first fragment of the response.
    async fn ask(&mut self, fragment: Vec<u8>) -> Result<Vec<u8>, Cause> {
        let code = CtlCode::PIPE_TRANSCEIVE;
        let max_output = u32::from(WINDOWS_FRAGMENT);
        let (output, _) = self.pipe.ioctl(code, fragment, max_output).await?;
        self.fragments.push(&output);
        self.next().await
    }

    /// Returns the next fragment.
    async fn next(&mut self) -> Result<Vec<u8>, Cause> {
        loop {
            if let Some(fragment) = self.fragments.take()? {
                return Ok(fragment);
            }
            let buffer = vec![0; usize::from(WINDOWS_FRAGMENT)];
            let (reply, memory) = self.pipe.start_read(buffer.into(), 0).await.only();
            let count = count(reply)?;
            let region = memory.into_region().filter(|_| count > 0);
            let region = region.ok_or_else(|| refused("the server closed the pipe"))?;
            self.fragments.push(&region[..count]);
        }
    }

    /// Calls a function, and returns its results from all fragments.
    async fn call(&mut self, opnum: u16, stub: &[u8]) -> Result<Vec<u8>, Cause> {
        let mut fragments = request_fragments(2, 0, opnum, stub, WINDOWS_FRAGMENT);
        let request = fragments.pop().expect("a call has at least one fragment");
        assert!(fragments.is_empty(), "a host's name fits a fragment");
        let mut answer = self.ask(request).await?;
        let mut results = Vec::new();
        loop {
            let pdu = Pdu::decode(&answer)?;
            let Body::Response(part) = pdu.body else {
                return Err(refused("the server refuses the RPC call"));
            };
            results.extend_from_slice(part.stub);
            if pdu.flags.contains(PacketFlags::LAST_FRAG) {
                return Ok(results);
            }
            if results.len() > ANSWER_MAX {
                return Err(refused("the list of shares is too long"));
            }
            answer = self.next().await?;
        }
    }
}
