//! QUERY_INFO and SET_INFO of a pipe. \[MS-SMB2\] 3.3.5.20, 3.3.5.21
//!
//! As Samba has it, FileStandardInformation and nothing else; and the pipe classes that
//! Windows has.

use alloc::vec::Vec;

use wire::Status;
use wire::fscc::{
    FileInfoClass, FilePipeInformation, FilePipeLocalInformation, FileStandardInformation, InfoType,
};
use wire::{query_info, set_info};

use super::control::CONNECTED;
use super::instance::Pipe;
use super::open::ALLOCATION;
use super::state::MAX_WRITE;
use super::transfer::Step;
use crate::server::context::{Context, Progress, Reply};
use crate::server::open::malformed;

/// The type, the configuration and the number of opens of any pipe. \[MS-FSCC\] 2.4.38
const MESSAGES: u32 = 1;
const FULL_DUPLEX: u32 = 2;
const UNLIMITED: u32 = u32::MAX;

pub(super) fn query(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = query_info::Request::decode(message).map_err(malformed)?;
    context.check_charge(request.output_buffer_length)?;
    let pipe = context.pipe(request.file_id)?;
    if request.output_buffer_length > context.max_transact() {
        return Err(Status::INVALID_PARAMETER);
    }
    let class = FileInfoClass(request.file_info_class);
    let is_file = request.info_type == InfoType::FILE;
    let output = describe(&pipe, class).filter(|_| is_file);
    let output = output.ok_or(Status::NOT_SUPPORTED)?;
    if output.len() > request.output_buffer_length as usize {
        return Err(Status::INFO_LENGTH_MISMATCH);
    }
    let response = query_info::Response { output: &output };
    let reply = Reply::message(|out| response.encode(out));
    Ok(Progress::Done(reply))
}

fn describe(pipe: &Pipe, class: FileInfoClass) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    let state = pipe.state.lock();
    match class {
        FileInfoClass::STANDARD => FileStandardInformation {
            allocation_size: ALLOCATION,
            end_of_file: 0,
            number_of_links: 1,
            is_delete_pending: true,
            is_directory: false,
        }
        .encode(&mut output),
        FileInfoClass::PIPE => FilePipeInformation {
            read_mode: state.read_mode,
            completion_mode: 0,
        }
        .encode(&mut output),
        FileInfoClass::PIPE_LOCAL => {
            let quota = u32::try_from(MAX_WRITE).expect("a few KiB");
            FilePipeLocalInformation {
                pipe_type: MESSAGES,
                configuration: FULL_DUPLEX,
                maximum_instances: UNLIMITED,
                current_instances: 1,
                inbound_quota: quota,
                read_data_available: u32::try_from(state.unread_len()).unwrap_or(u32::MAX),
                outbound_quota: quota,
                write_quota_available: quota,
                state: CONNECTED,
                end: 0,
            }
            .encode(&mut output);
        }
        _ => return None,
    }
    Some(output)
}

/// A client may say how it reads; that a read does not wait is not offered.
pub(super) fn set(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = set_info::Request::decode(message).map_err(malformed)?;
    let length = u32::try_from(request.buffer.len()).unwrap_or(u32::MAX);
    context.check_charge(length)?;
    let pipe = context.pipe(request.file_id)?;
    let class = FileInfoClass(request.file_info_class);
    if request.info_type != InfoType::FILE || class != FileInfoClass::PIPE {
        return Err(Status::NOT_SUPPORTED);
    }
    let mode = FilePipeInformation::decode(request.buffer);
    let mode = mode.map_err(|_| Status::INFO_LENGTH_MISMATCH)?;
    if mode.read_mode > 1 || mode.completion_mode != 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    pipe.state.lock().read_mode = mode.read_mode;
    let reply = Reply::message(|out| set_info::Response.encode(out));
    Ok(Progress::Done(reply))
}
