//! Named data streams of files. \[MS-FSCC\] 2.1.5.3, 2.4.49

use wire::access::AccessMask;
use wire::fscc::{FileDispositionInformation, FileInfoClass, InfoType, Streams};

use crate::error::{Cause, Error};
use crate::file::File;
use crate::open_options::OpenOptions;
use crate::path;
use crate::share::{Share, set};

/// A named data stream of a file or directory: a second content beside the data of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamInfo {
    /// Name of the stream without colons and type: `Zone.Identifier`.
    pub name: String,
    /// Length of the stream in bytes.
    pub size: u64,
    /// Disk space that is allocated for the stream, in bytes.
    pub allocation: u64,
}

impl File {
    /// Lists the named data streams of the file or directory. Its own data, the stream without a
    /// name, are not in the list.
    ///
    /// # Errors
    /// The server has no streams, or the connection is lost.
    pub async fn streams(&self) -> Result<Vec<StreamInfo>, Error> {
        let bytes = self.query_all(InfoType::FILE, FileInfoClass::STREAM.0, 0);
        let streams = bytes.await.and_then(|bytes| parse(&bytes));
        streams.map_err(|cause| self.failed("list the streams of", cause))
    }
}

impl Share {
    /// Opens the named data stream `stream` of the file or directory `path`, as `options` describe.
    /// `path` is relative to the root of the share. A stream that is created makes its file if that
    /// does not exist.
    ///
    /// # Errors
    /// The name of the stream is not valid, the stream does not exist, the server has no streams,
    /// and the errors of [`Share::open`].
    pub async fn open_stream(
        &self,
        path: &str,
        stream: &str,
        options: &OpenOptions,
    ) -> Result<File, Error> {
        let wire = path::to_wire_stream(path, stream)?;
        self.open_at(&format!("{path}:{stream}"), wire, options)
            .await
    }

    /// Lists the named data streams of the file or directory `path`, relative to the root of the
    /// share.
    ///
    /// # Errors
    /// The file does not exist, or the server has no streams.
    pub async fn streams(&self, path: &str) -> Result<Vec<StreamInfo>, Error> {
        let options = OpenOptions::new().access(AccessMask::FILE_READ_ATTRIBUTES);
        let file = self.open(path, &options).await?;
        let streams = file.streams().await?;
        file.close().await?;
        Ok(streams)
    }

    /// Removes the named data stream `stream` of the file or directory `path`, relative to the root
    /// of the share. The file and its other streams remain.
    ///
    /// # Errors
    /// The stream does not exist, or the user may not remove it.
    pub async fn remove_stream(&self, path: &str, stream: &str) -> Result<(), Error> {
        let wire = path::to_wire_stream(path, stream)?;
        let options = OpenOptions::new().access(AccessMask::DELETE);
        let mut buffer = Vec::new();
        FileDispositionInformation {
            is_delete_pending: true,
        }
        .encode(&mut buffer);
        let steps = vec![set(FileInfoClass::DISPOSITION.0, buffer)];
        let path = format!("{path}:{stream}");
        self.alone_at("remove", (&path, wire), &options, steps)
            .await
            .map(drop)
    }
}

/// The named streams in a list of FILE_STREAM_INFORMATION.
fn parse(bytes: &[u8]) -> Result<Vec<StreamInfo>, Cause> {
    let mut streams = Vec::new();
    for stream in Streams::new(bytes) {
        let stream = stream?;
        let Some(name) = stream.name.decode() else {
            let why = "the name of a stream is not valid UTF-16";
            return Err(Cause::Malformed(why.to_owned()));
        };
        // ":notes:$DATA"; other types than $DATA are not for clients.
        let Some((name, kind)) = name
            .strip_prefix(':')
            .and_then(|name| name.rsplit_once(':'))
        else {
            continue;
        };
        if kind.eq_ignore_ascii_case("$DATA") && path::is_stream_name(name) {
            streams.push(StreamInfo {
                name: name.to_owned(),
                size: stream.stream_size,
                allocation: stream.allocation_size,
            });
        }
    }
    Ok(streams)
}

#[cfg(test)]
mod tests {
    use wire::Utf16;
    use wire::fscc::{FileStreamInformation, StreamWriter};
    use wire::text::utf16;

    use super::*;

    #[test]
    fn only_named_data_streams_are_listed() {
        let mut writer = StreamWriter::new(4096);
        for name in [
            "::$DATA",
            ":notes:$DATA",
            ":x:$INDEX",
            "::",
            "a:b",
            ":a/b:$DATA",
        ] {
            let name = utf16(name);
            assert!(writer.push(&FileStreamInformation {
                stream_size: 3,
                allocation_size: 8,
                name: Utf16(&name),
            }));
        }
        let notes = StreamInfo {
            name: "notes".to_owned(),
            size: 3,
            allocation: 8,
        };
        assert_eq!(parse(&writer.finish()).expect("valid"), [notes]);
        assert_eq!(parse(&[]).expect("empty"), []);
    }
}
