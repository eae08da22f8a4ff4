//! Ten thousand files go there and back, bit for bit and with their times.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::rig::{Peer, Rig, for_each_transport, pattern};
use anyhow::{Context as _, Result, bail, ensure};
use smbeam_client::transfer::{TransferOptions, download, upload};
use smbeam_client::{Changes, OpenOptions, Share, Wait, WriteOptions};
use smbeam_tests::files::paths;
use smbeam_tests::random::Random;

for_each_transport!(
    a_tree_of_ten_thousand_files_comes_back,
    large_files_come_back
);

const DIRECTORIES: u64 = 100;
const FILES_PER_DIRECTORY: u64 = 100;
/// Number of threads that upload and download at the same time.
const HANDS: usize = 8;
/// Files above this take more than one message.
const SMALL_BYTES: u64 = 20_000;

/// The expected properties of a file of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Model {
    seed: u64,
    length: usize,
    written: SystemTime,
}

impl Model {
    fn bytes(&self) -> Vec<u8> {
        pattern(self.length, self.seed)
    }
}

/// The files of the tree by their paths: most small, some empty, one of each directory larger.
fn tree() -> BTreeMap<String, Model> {
    let mut random = Random::new(11);
    let mut found = BTreeMap::new();
    for directory in 0..DIRECTORIES {
        for file in 0..FILES_PER_DIRECTORY {
            let length = match file {
                0 => 0,
                1 => SMALL_BYTES * 10 + random.below(100_000),
                _ => random.below(SMALL_BYTES),
            };
            // From 1970 on; in units of 100 ns, as on the wire.
            let written = Duration::from_secs(random.below(2_000_000_000))
                + Duration::from_nanos(100 * random.below(10_000_000));
            let model = Model {
                seed: directory * FILES_PER_DIRECTORY + file,
                length: usize::try_from(length).expect("a small number"),
                written: UNIX_EPOCH + written,
            };
            let path = format!("tree/dir {}/{directory}/file-{file}.bin", directory % 10);
            found.insert(path, model);
        }
    }
    found
}

/// Does the same with all of them, several at a time.
fn with_all<T: Send>(work: Vec<T>, act: impl Fn(T) -> Result<()> + Sync) -> Result<()> {
    let queue = Mutex::new(VecDeque::from(work));
    let next = || queue.lock().ok().and_then(|mut queue| queue.pop_front());
    thread::scope(|scope| {
        let hand = || {
            while let Some(one) = next() {
                act(one)?;
            }
            Ok(())
        };
        let hands: Vec<_> = (0..HANDS).map(|_| scope.spawn(hand)).collect();
        hands.into_iter().try_for_each(|hand| match hand.join() {
            Ok(result) => result,
            Err(_) => bail!("a thread panicked"),
        })
    })
}

fn a_tree_of_ten_thousand_files_comes_back(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    let tree = tree();
    ensure!(tree.len() == 10_000, "{} files", tree.len());
    for directory in 0..DIRECTORIES {
        let path = format!("tree/dir {}/{directory}", directory % 10);
        share.create_dir_all(&path).wait()?;
    }
    with_all(tree.iter().collect(), |(path, model)| {
        send(&share, path, *model).with_context(|| path.clone())
    })?;
    assert_on_disk(&rig, &tree)?;
    let listed = Mutex::new(list(&share, "tree")?);
    with_all(tree.iter().collect(), |(path, model)| {
        let bytes = share.read(path).wait()?;
        ensure!(
            bytes == model.bytes(),
            "{path} comes back as something else"
        );
        let entry = listed
            .lock()
            .ok()
            .and_then(|mut listed| listed.remove(path));
        let (size, written) = entry.with_context(|| format!("{path} is not listed"))?;
        ensure!(
            size == model.length as u64,
            "{path} is listed with {size} bytes"
        );
        ensure!(
            written == model.written,
            "{path} is listed as of {written:?}"
        );
        let metadata = share.metadata(path).wait()?;
        ensure!(metadata.written == model.written, "{path}: {metadata:?}");
        Ok(())
    })?;
    let left = listed.into_inner().unwrap_or_default();
    ensure!(left.is_empty(), "unknown files are listed: {left:?}");
    Ok(())
}

fn send(share: &Share, path: &str, model: Model) -> Result<()> {
    let changes = Changes::default().written(Some(model.written));
    let bytes = model.bytes();
    if bytes.len() as u64 <= SMALL_BYTES {
        let new = WriteOptions::default().create_new(true);
        share.write(path, bytes, &new).wait()?;
        share.set_metadata(path, &changes).wait()?;
        return Ok(());
    }
    let new = OpenOptions::new().write(true).create_new(true);
    let file = share.open(path, &new).wait()?;
    let options = TransferOptions::default();
    let mut source = bytes.as_slice();
    let sent = upload(&file, 0..u64::MAX, &mut source, &options, &mut |_| ()).wait()?;
    ensure!(sent == bytes.len() as u64, "{sent} bytes were sent");
    file.set_metadata(&changes).wait()?;
    file.close().wait()?;
    Ok(())
}

fn assert_on_disk(rig: &Rig, tree: &BTreeMap<String, Model>) -> Result<()> {
    let on_disk = paths(&rig.path(""))?;
    let files = on_disk
        .iter()
        .filter(|path| rig.path("").join(path).is_file());
    ensure!(files.count() == tree.len(), "other files are on disk");
    for (path, model) in tree {
        rig.assert_holds(path, &model.bytes())?;
        let written = fs::metadata(rig.path(path))?.modified()?;
        ensure!(
            written == model.written,
            "{path} is of {written:?} on disk, not {model:?}"
        );
    }
    Ok(())
}

/// The files below a directory with the properties in the listings.
fn list(share: &Share, root: &str) -> Result<BTreeMap<String, (u64, SystemTime)>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in share.read_dir(&directory, "*").wait()?.blocking() {
            let entry = entry?;
            let path = format!("{directory}/{}", entry.name);
            if entry.metadata.is_dir() {
                directories.push(path);
            } else {
                found.insert(path, (entry.metadata.size, entry.metadata.written));
            }
        }
    }
    Ok(found)
}

fn large_files_come_back(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    // Around the sizes of one message and of a window of them.
    for length in [1 << 20, (1 << 20) + 1, (16 << 20) - 1, 50_000_003] {
        let bytes = pattern(length, length as u64);
        let new = OpenOptions::new().read(true).write(true).create_new(true);
        let name = format!("large-{length}");
        let file = share.open(&name, &new).wait()?;
        let options = TransferOptions::default();
        let mut reported = 0;
        let mut source = bytes.as_slice();
        let mut progress = |count| reported += count;
        upload(&file, 0..u64::MAX, &mut source, &options, &mut progress).wait()?;
        ensure!(
            reported == length as u64,
            "{reported} bytes of {length} were reported"
        );
        rig.assert_holds(&name, &bytes)?;
        let mut back = vec![0; length];
        let mut sink = |offset: u64, piece: &[u8]| {
            let start = usize::try_from(offset).map_err(std::io::Error::other)?;
            back[start..start + piece.len()].copy_from_slice(piece);
            Ok(())
        };
        let got = download(&file, 0..u64::MAX, &mut sink, &options, &mut |_| ()).wait()?;
        ensure!(
            got == length as u64 && back == bytes,
            "{name} comes back as something else"
        );
        file.close().wait()?;
    }
    Ok(())
}
