//! The traits of `futures` and of `tokio`, with the cargo features of these names.
#![cfg(any(feature = "futures", feature = "tokio"))]

mod rig;

use std::io::SeekFrom;

use rig::{Rig, pattern};
use smbeam_client::{File, OpenOptions, Wait};

const LEN: usize = (20 << 20) + 12_345;

fn created(rig: &Rig) -> File {
    let options = OpenOptions::new().read(true).write(true).create(true);
    rig.share().open("file", &options).wait().expect("a file")
}

#[cfg(feature = "futures")]
mod futures {
    use futures_util::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, StreamExt};
    use smbeam_client::{CompletionFilter, WriteOptions};

    use super::*;

    #[test]
    fn a_file_is_written_and_read() {
        let rig = Rig::new();
        let file = created(&rig);
        let bytes = pattern(LEN, 1);
        let work = async {
            let mut writer = file.writer()?;
            writer.write_all(&bytes).await?;
            writer.seek(SeekFrom::Start(10)).await?;
            writer.write_all(b"again").await?;
            writer.close().await?;
            let mut reader = file.reader();
            let mut read = Vec::new();
            reader.read_to_end(&mut read).await?;
            let at = reader.seek(SeekFrom::End(-5)).await?;
            let mut end = Vec::new();
            reader.read_to_end(&mut end).await?;
            Ok::<_, std::io::Error>((read, at, end))
        };
        let (read, at, end) = work.wait().expect("written and read");
        assert!(read[10..15] == *b"again" && read[15..] == bytes[15..]);
        assert_eq!((at, &end[..]), (LEN as u64 - 5, &bytes[LEN - 5..]));
        let written = std::fs::read(rig.path("file")).expect("the file on the server");
        assert!(written == read);
    }

    #[test]
    fn a_listing_is_a_stream() {
        let rig = Rig::new();
        let share = rig.share();
        for index in 0..300 {
            std::fs::write(rig.path(&format!("file {index:03}")), "x").expect("a file");
        }
        let work = async {
            let listing = share.read_dir("", "").await?;
            let names = listing.map(|entry| entry.map(|entry| entry.name));
            let names: Vec<_> = names.collect().await;
            names.into_iter().collect::<Result<Vec<_>, _>>()
        };
        let mut names = work.wait().expect("a listing");
        names.sort();
        let expected: Vec<_> = (0..300).map(|index| format!("file {index:03}")).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_watch_is_a_stream() {
        let rig = Rig::new();
        let share = rig.share();
        let watch = share.watch("", false, CompletionFilter::FILE_NAME).wait();
        let mut watch = watch.expect("a watch");
        let (filler, done) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let changes = StreamExt::next(&mut watch).wait();
            filler.send(changes.expect("a watch does not end"))
        });
        // A change that reaches the server before the request is not reported, so others follow.
        let mut index = 0;
        let changes = loop {
            if let Ok(changes) = done.recv_timeout(std::time::Duration::from_millis(20)) {
                break changes.expect("changes");
            }
            index += 1;
            let (name, options) = (format!("new {index}"), WriteOptions::default());
            let written = share.write(&name, vec![1], &options).wait();
            written.expect("a file");
        };
        assert!(!changes.is_empty());
        thread.join().expect("no panic").expect("received");
    }
}

#[cfg(feature = "tokio")]
mod tokio {
    use ::tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn a_file_is_written_and_read() {
        let rig = Rig::new();
        let file = created(&rig);
        let bytes = pattern(LEN, 2);
        let work = async {
            let mut writer = file.writer()?;
            writer.write_all(&bytes).await?;
            writer.seek(SeekFrom::Start(10)).await?;
            writer.write_all(b"again").await?;
            writer.shutdown().await?;
            let mut reader = file.reader();
            let mut read = Vec::new();
            reader.read_to_end(&mut read).await?;
            let at = reader.seek(SeekFrom::End(-5)).await?;
            let mut end = Vec::new();
            reader.read_to_end(&mut end).await?;
            Ok::<_, std::io::Error>((read, at, end))
        };
        let (read, at, end) = work.wait().expect("written and read");
        assert!(read[10..15] == *b"again" && read[15..] == bytes[15..]);
        assert_eq!((at, &end[..]), (LEN as u64 - 5, &bytes[LEN - 5..]));
    }
}
