//! The query of the Unix metadata of a file, as a message and its response.

use proto::client::Step;
use proto::client::request::{FileRef, Reply};
use wire::fscc::{FileInfoClass, InfoType};
use wire::posix::FilePosixInformation;

use crate::error::{Cause, unexpected};
use crate::metadata::Metadata;

/// Largest information class 100 in bytes: the fixed fields and two SIDs.
const POSIX_LEN: u32 = FilePosixInformation::FIXED_LEN as u32 + 2 * SID_LEN;
/// Largest encoded SID in bytes: 15 sub-authorities. \[MS-DTYP\] 2.4.2.2
const SID_LEN: u32 = 8 + 15 * 4;

/// The query of the Unix metadata of a file.
pub(crate) fn query_step(file: FileRef) -> Step {
    Step::QueryInfo {
        file,
        info_type: InfoType::FILE,
        class: FileInfoClass::POSIX.0,
        additional: 0,
        length: POSIX_LEN,
    }
}

/// The metadata in the response to [`query_step`].
pub(crate) fn metadata_in(reply: Option<&Reply>) -> Result<Metadata, Cause> {
    match reply {
        Some(Reply::Output(bytes, false)) => {
            Ok(Metadata::from_posix(&FilePosixInformation::decode(bytes)?))
        }
        _ => Err(unexpected()),
    }
}
