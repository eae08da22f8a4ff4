//! The metadata of a file on a server.

use futures_util::future::join3;
use smbeam_client::{
    AccessMask, Error, ExtendedAttribute, File, OpenOptions, SecurityDescriptor,
    SecurityInformation, Wait as _,
};
use wire::Status;

use super::extras::{Descriptor, Extras, is_same_descriptor};
use crate::descriptor::{self, PARTS};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FilePath, RemotePath};
use crate::unix::attributes;

/// Reads the metadata, with three queries at the same time.
pub(super) fn read(path: &RemotePath) -> Outcome<Extras> {
    let access =
        AccessMask::FILE_READ_ATTRIBUTES | AccessMask::FILE_READ_EA | AccessMask::READ_CONTROL;
    let options = OpenOptions::new().access(access);
    let file = path.share.open(&path.path, &options).wait();
    let file = file.map_err(path.failed())?;
    let queries = join3(
        file.streams(),
        file.extended_attributes(),
        file.security(PARTS),
    );
    let (streams, attributes, descriptor) = queries.wait();
    let mut extras = Extras {
        descriptor: supported(descriptor).map_err(path.failed())?,
        ..Extras::default()
    };
    for stream in supported(streams)
        .map_err(path.failed())?
        .unwrap_or_default()
    {
        extras.streams.insert(stream.name, stream.size);
    }
    let attributes = supported(attributes).map_err(path.failed())?;
    for attribute in attributes.unwrap_or_default() {
        extras.insert_attribute(attribute.name, attribute.value);
    }
    file.close().wait().map_err(path.failed())?;
    let stored = attributes::take(&mut extras.attributes);
    extras.unix = FilePath::Remote(path.clone()).unix()?.or(stored);
    Ok(extras)
}

/// The result of a query; `None` if the server does not have such metadata.
fn supported<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_unsupported(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_unsupported(error: &Error) -> bool {
    matches!(
        error.status(),
        Some(
            Status::NOT_SUPPORTED
                | Status::NOT_IMPLEMENTED
                | Status::INVALID_DEVICE_REQUEST
                | Status::INVALID_INFO_CLASS
                | Status::INVALID_PARAMETER
                | Status::EAS_NOT_SUPPORTED
        )
    )
}

/// Opens a stream.
pub(crate) fn open_stream(
    path: &RemotePath,
    name: &str,
    options: &OpenOptions,
) -> Result<File, Error> {
    path.share.open_stream(&path.path, name, options).wait()
}

/// Reads a whole stream of `size` bytes.
pub(super) fn read_stream(path: &RemotePath, name: &str, size: u64) -> Outcome<Vec<u8>> {
    let file = open_stream(path, name, &OpenOptions::new().read(true)).map_err(path.failed())?;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < size {
        let left = size as usize - bytes.len();
        let piece = file.read(left, bytes.len() as u64).wait();
        let piece = piece.map_err(path.failed())?;
        if piece.is_empty() {
            let reason = format!("the stream {name} was changed during the copy");
            return Err(Failure::new(Exit::Differs, path, reason));
        }
        bytes.extend_from_slice(&piece);
    }
    file.close().wait().map_err(path.failed())?;
    Ok(bytes)
}

/// The options to write a stream from its start.
pub(crate) fn writing() -> OpenOptions {
    OpenOptions::new().write(true).create(true).truncate(true)
}

/// Creates a stream, or replaces its content.
pub(super) fn write_stream(path: &RemotePath, name: &str, bytes: Vec<u8>) -> Outcome {
    let file = open_stream(path, name, &writing()).map_err(path.failed())?;
    if !bytes.is_empty() {
        let (written, _) = file.write_at(bytes, 0).wait();
        written.map_err(path.failed())?;
    }
    file.close().wait().map_err(path.failed())
}

/// Sets an extended attribute, or removes it if the value is empty.
pub(super) fn set_attribute(path: &RemotePath, name: &[u8], value: &[u8]) -> Outcome {
    let attributes = [ExtendedAttribute::new(name, value)];
    let set = path.share.set_extended_attributes(&path.path, &attributes);
    set.wait().map_err(path.failed())
}

/// Sets owner, group and DACL. Few users may set another owner, and then only the DACL is set.
pub(super) fn set_descriptor(path: &RemotePath, descriptor: &SecurityDescriptor) -> Descriptor {
    let Err(failure) = descriptor::set(path, PARTS, descriptor) else {
        return match descriptor::of(path, PARTS) {
            Ok(stored) if !is_same_descriptor(descriptor, &stored) => Descriptor::Changed,
            // Without the right to read it, the word of the server counts.
            _ => Descriptor::Whole,
        };
    };
    match descriptor::set(path, SecurityInformation::DACL, descriptor) {
        Ok(()) => Descriptor::WithoutOwner(failure),
        Err(failure) => Descriptor::Nothing(failure),
    }
}
