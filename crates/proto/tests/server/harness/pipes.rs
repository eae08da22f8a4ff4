//! Requests on pipes.

use wire::fsctl::CtlCode;
use wire::ioctl::{self, IoctlFlags};
use wire::rpc::{
    Bind, BindAck, Body, Fault, Fragments, PacketFlags, Pdu, PresentationContext, SyntaxId,
    request_fragments,
};
use wire::{Command, FileId, Status};

use super::client::{Answer, Client, Message, bytes_of};
use super::files::data;
use super::rig::Rig;

/// The outcome of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Stub(Vec<u8>),
    Fault(Fault),
}

impl Client {
    pub(crate) fn control_message(
        &mut self,
        ctl_code: CtlCode,
        file_id: FileId,
        input: &[u8],
        max_output_response: u32,
    ) -> Message {
        let request = ioctl::Request {
            ctl_code,
            file_id,
            max_input_response: 0,
            max_output_response,
            flags: IoctlFlags::IS_FSCTL,
            input,
            output: &[],
        };
        self.message(Command::IOCTL, bytes_of(|out| request.encode(out)))
    }

    /// Writes, and reads the response of one fragment.
    pub(crate) fn exchange(&mut self, rig: &mut Rig, file_id: FileId, bytes: &[u8]) -> Vec<u8> {
        let message = self.control_message(CtlCode::PIPE_TRANSCEIVE, file_id, bytes, 8192);
        let answer = self.ask(rig, message);
        assert_eq!(answer.status(), Status::SUCCESS);
        output(&answer)
    }

    /// Binds an interface.
    pub(crate) fn bind(&mut self, rig: &mut Rig, pipe: FileId, interface: SyntaxId) -> BindAck {
        let answer = self.exchange(rig, pipe, &bind(&[(interface, SyntaxId::NDR32)]));
        match Pdu::decode(&answer).expect("a fragment").body {
            Body::BindAck(ack) => ack,
            other => panic!("{other:?}"),
        }
    }

    /// Makes a call and reads all fragments of its outcome.
    pub(crate) fn call(&mut self, rig: &mut Rig, pipe: FileId, opnum: u16, stub: &[u8]) -> Called {
        let mut request = request_fragments(7, 0, opnum, stub, 4280);
        assert_eq!(request.len(), 1);
        let mut answer = self.exchange(rig, pipe, &request.remove(0));
        let mut whole = Vec::new();
        loop {
            let mut fragments = Fragments::new(4280);
            fragments.push(&answer);
            let fragment = fragments.take().expect("a header").expect("all of it");
            assert_eq!(fragments.pending(), 0, "a read takes from one fragment");
            let pdu = Pdu::decode(&fragment).expect("a fragment");
            assert_eq!(pdu.call_id, 7);
            match pdu.body {
                Body::Response(part) => whole.extend_from_slice(part.stub),
                Body::Fault(fault) => return Called::Fault(fault),
                other => panic!("{other:?}"),
            }
            if pdu.flags.contains(PacketFlags::LAST_FRAG) {
                return Called::Stub(whole);
            }
            let message = self.read_message(pipe, 8192);
            answer = data(&self.ask(rig, message));
        }
    }
}

/// A bind to interfaces, each in one syntax, with context ids from 0.
pub(crate) fn bind(interfaces: &[(SyntaxId, SyntaxId)]) -> Vec<u8> {
    let context = |(id, (interface, syntax)): (usize, &(SyntaxId, SyntaxId))| PresentationContext {
        id: u16::try_from(id).expect("a few"),
        abstract_syntax: *interface,
        transfer_syntaxes: vec![*syntax],
    };
    let bind = Bind {
        max_xmit_frag: 4280,
        max_recv_frag: 4280,
        assoc_group_id: 0,
        contexts: interfaces.iter().enumerate().map(context).collect(),
    };
    fragment(1, Body::Bind(bind))
}

/// A complete PDU in one fragment.
pub(crate) fn fragment(call_id: u32, body: Body<'_>) -> Vec<u8> {
    let pdu = Pdu {
        call_id,
        flags: PacketFlags::WHOLE,
        body,
    };
    let mut bytes = Vec::new();
    pdu.encode(&mut bytes);
    bytes
}

/// The output in the response to an IOCTL.
pub(crate) fn output(answer: &Answer) -> Vec<u8> {
    let response = ioctl::Response::decode(&answer.message).expect("a response");
    response.output.to_vec()
}
