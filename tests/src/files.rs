//! Files for transfers, and comparisons of the files at both ends.

use std::fs::{self, File};
use std::io::{BufReader, Read as _, Write as _};
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::random::Random;

const CHUNK_BYTES: usize = 1 << 20;

/// Writes `length` bytes that depend on `seed` to a new file at `path`.
pub fn write_random(path: &Path, length: u64, seed: u64) -> Result<()> {
    let mut file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    let mut random = Random::new(seed);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut left = length;
    while left > 0 {
        random.fill(&mut chunk);
        let part = usize::try_from(left)
            .unwrap_or(CHUNK_BYTES)
            .min(CHUNK_BYTES);
        file.write_all(&chunk[..part])?;
        left -= part as u64;
    }
    Ok(())
}

/// Fails unless the two files hold the same bytes.
pub fn assert_same_file(one: &Path, other: &Path) -> Result<()> {
    let mut readers = Vec::new();
    for path in [one, other] {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        readers.push(BufReader::with_capacity(CHUNK_BYTES, file));
    }
    let mut chunks = [vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]];
    let mut offset = 0;
    loop {
        let mut lengths = [0; 2];
        for (index, reader) in readers.iter_mut().enumerate() {
            lengths[index] = read_full(reader, &mut chunks[index])?;
        }
        if chunks[0][..lengths[0]] != chunks[1][..lengths[1]] {
            bail!(
                "{} and {} differ after byte {offset}",
                one.display(),
                other.display()
            );
        }
        if lengths[0] == 0 {
            return Ok(());
        }
        offset += lengths[0];
    }
}

/// Makes a tree below `root` with empty, odd, large and deep files in `directories` directories.
pub fn make_tree(root: &Path, directories: u32) -> Result<()> {
    for number in 0..directories {
        let directory = root
            .join(format!("dir {number}"))
            .join("below")
            .join("deeper");
        fs::create_dir_all(&directory)?;
        for (index, length) in [0, 1, 4095, 65_537, 1_200_003].into_iter().enumerate() {
            let seed = u64::from(number) * 100 + index as u64;
            write_random(&directory.join(format!("file-{index}.bin")), length, seed)?;
        }
        fs::write(
            directory.join("..").join("note.txt"),
            format!("note {number}\n"),
        )?;
    }
    Ok(())
}

/// Fails unless both trees hold the same directories and files with the same contents.
pub fn assert_same_tree(one: &Path, other: &Path) -> Result<()> {
    let (left, right) = (paths(one)?, paths(other)?);
    ensure!(
        left == right,
        "the trees hold different names: {left:?} and {right:?}"
    );
    for path in left {
        if one.join(&path).is_file() {
            assert_same_file(&one.join(&path), &other.join(&path))?;
        }
    }
    Ok(())
}

/// Gives everything below `root` to the user with `id`.
pub fn give_tree_to(root: &Path, id: u32) -> Result<()> {
    for path in paths(root)? {
        lchown(root.join(path), Some(id), Some(id))?;
    }
    Ok(())
}

/// Every path below `root`, sorted.
pub fn paths(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory);
        for entry in entries.with_context(|| format!("cannot list {}", directory.display()))? {
            let path = entry?.path();
            if path.symlink_metadata()?.is_dir() {
                directories.push(path.clone());
            }
            found.push(path.strip_prefix(root)?.to_path_buf());
        }
    }
    found.sort();
    Ok(found)
}

fn read_full(reader: &mut BufReader<File>, buffer: &mut [u8]) -> Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match reader.read(&mut buffer[length..])? {
            0 => break,
            count => length += count,
        }
    }
    Ok(length)
}
