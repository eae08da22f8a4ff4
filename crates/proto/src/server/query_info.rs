//! QUERY_INFO. \[MS-SMB2\] 3.3.5.20

mod ea;
mod file;
mod filesystem;
mod quota;
mod security;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::fscc::{FileInfoClass, FsInfoClass, InfoType};
use wire::query_info::{Request, Response, SecurityInformation};
use wire::{Status, error_response};

use crate::effect::Outcome;
use crate::file::{FileOp, Metadata, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::open::{Open, malformed};
pub(crate) use filesystem::volume_id;

/// The state of a request that waits for the file system.
pub(crate) struct Step {
    open: Arc<Open>,
    asked: Asked,
    /// Bytes of the answer at most.
    max_len: usize,
}

/// The requested information.
enum Asked {
    File(FileInfoClass),
    /// FileAllInformation, once the metadata are there: the extended attributes are missing.
    All(Box<Metadata>),
    EaSize,
    Eas(ea::Selection),
    Filesystem(FsInfoClass),
    Security(SecurityInformation),
    Quotas(quota::Selection),
}

/// Starts on a request.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    let input_len = u32::try_from(request.input.len()).unwrap_or(u32::MAX);
    context.check_charge(request.output_buffer_length.max(input_len))?;
    let open = context.open(request.file_id)?;
    if request.output_buffer_length > context.max_transact() {
        return Err(Status::INVALID_PARAMETER);
    }
    let max_len = request.output_buffer_length as usize;
    let (asked, operation) = match request.info_type {
        InfoType::FILE => {
            let class = FileInfoClass(request.file_info_class);
            file::check(class, &open, context.dialect, max_len)?;
            match class {
                FileInfoClass::EA => (Asked::EaSize, Operation::QueryEas),
                FileInfoClass::FULL_EA => {
                    let selection = ea::Selection::new(&request, &open)?;
                    (Asked::Eas(selection), Operation::QueryEas)
                }
                FileInfoClass::STREAM => (Asked::File(class), Operation::ListStreams),
                class => (Asked::File(class), Operation::Stat),
            }
        }
        InfoType::FILESYSTEM => {
            let class = FsInfoClass(request.file_info_class);
            filesystem::check(class, &open, max_len)?;
            (Asked::Filesystem(class), Operation::Volume)
        }
        InfoType::SECURITY => {
            let parts = SecurityInformation(request.additional_information);
            security::check(parts, &open)?;
            (Asked::Security(parts), Operation::QuerySecurity)
        }
        InfoType::QUOTA => {
            let (selection, of) = quota::Selection::new(request.input, &open, max_len)?;
            (Asked::Quotas(selection), Operation::QueryQuotas(of))
        }
        _ => return Err(Status::INVALID_PARAMETER),
    };
    let operation = FileOp::OnOpen(open.file, operation);
    let step = Step {
        open,
        asked,
        max_len,
    };
    Ok(context.wait(operation, step))
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        let outcome = outcome.expect_file()?;
        match self.asked {
            Asked::File(FileInfoClass::STREAM) => {
                let bytes = file::describe_streams(&outcome.expect_streams());
                Ok(answer(bytes, self.max_len))
            }
            Asked::File(class) => {
                let metadata = outcome.expect_metadata();
                if class == FileInfoClass::ALL {
                    let operation = FileOp::OnOpen(self.open.file, Operation::QueryEas);
                    let asked = Asked::All(Box::new(metadata));
                    return Ok(context.wait(operation, Self { asked, ..self }));
                }
                let bytes = file::describe(class, context.server, &self.open, &metadata)?;
                Ok(answer(bytes, self.max_len))
            }
            Asked::All(metadata) => {
                let ea = ea::size(&outcome.expect_eas());
                let bytes = file::describe_all(context.server, &self.open, &metadata, ea);
                Ok(answer(bytes, self.max_len))
            }
            Asked::EaSize => {
                let mut bytes = Vec::new();
                ea::size(&outcome.expect_eas()).encode(&mut bytes);
                Ok(answer(bytes, self.max_len))
            }
            Asked::Eas(selection) => {
                let eas = outcome.expect_eas();
                let (status, bytes) = selection.answer(&eas, &self.open, self.max_len)?;
                let response = Response { output: &bytes };
                let reply = Reply::with_status(status, |out| response.encode(out));
                Ok(Progress::Done(reply))
            }
            Asked::Filesystem(class) => {
                let volume = outcome.expect_volume();
                let bytes = filesystem::describe(class, context, &volume)?;
                Ok(answer(bytes, self.max_len))
            }
            Asked::Quotas(selection) => {
                let quotas = outcome.expect_quotas();
                let bytes = selection.answer(&quotas, &self.open, self.max_len)?;
                Ok(answer(bytes, self.max_len))
            }
            Asked::Security(parts) => {
                let bytes = security::describe(parts, &outcome.expect_security());
                Ok(answer_whole(&bytes, self.max_len, context))
            }
        }
    }
}

/// A response, truncated to the client's buffer. \[MS-SMB2\] 3.3.5.20.1
fn answer(mut bytes: Vec<u8>, max_len: usize) -> Progress<Step> {
    let status = if bytes.len() > max_len {
        bytes.truncate(max_len);
        Status::BUFFER_OVERFLOW
    } else {
        Status::SUCCESS
    };
    let response = Response { output: &bytes };
    Progress::Done(Reply::with_status(status, |out| response.encode(out)))
}

/// An answer that is never cut: if it does not fit, the error contains the needed buffer size.
/// \[MS-SMB2\] 3.3.5.20.3, 2.2.2.2.2
fn answer_whole(bytes: &[u8], max_len: usize, context: &Context<'_>) -> Progress<Step> {
    if bytes.len() <= max_len {
        return answer(bytes.to_vec(), max_len);
    }
    let needed = u32::try_from(bytes.len()).expect("a descriptor is shorter than 4 GiB");
    let needed = needed.to_le_bytes();
    let in_context = context.dialect == wire::dialect::Dialect::SMB_3_1_1;
    let wrapped = error_response::encode_contexts(&[error_response::ErrorContext {
        error_id: error_response::ErrorId::DEFAULT,
        data: &needed,
    }]);
    let response = error_response::Response {
        context_count: u8::from(in_context),
        error_data: if in_context { &wrapped } else { &needed },
    };
    let reply = Reply::with_status(Status::BUFFER_TOO_SMALL, |out| response.encode(out));
    Progress::Done(reply)
}

#[cfg(test)]
mod tests;
