//! The SID of the domain of the server: random, made once, and kept in the state directory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::{info, warn};
use wire::security::Sid;

/// The file in the state directory: the SID and a line feed.
const FILE: &str = "local-sid";
/// Longer files are not ours. A SID has at most 184 characters.
const LEN_MAX: u64 = 256;
/// The first two numbers of the SID of a machine: the authority of Windows NT, and its part for
/// machines and domains. \[MS-DTYP\] 2.4.2.4
const NT_AUTHORITY: u64 = 5;
const NON_UNIQUE: u32 = 21;

/// Returns the SID in a state directory. It is made if it does not exist. Without a usable
/// directory it is a new one at each start, which the log says: entries for accounts of the server
/// in access lists then lose their meaning.
pub(crate) fn load(directory: &Path) -> Sid {
    match read_or_make(directory) {
        Ok(sid) => sid,
        Err(error) => {
            let file = path(directory);
            warn!(
                file = %file.display(),
                %error,
                "cannot keep the SID of the server: it is another one after a restart"
            );
            random()
        }
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

fn read_or_make(directory: &Path) -> io::Result<Sid> {
    let path = path(directory);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => return result,
    }
    let made = make(directory, &path)?;
    // Another server with the same directory may have been faster.
    let sid = read(&path)?;
    if made == sid {
        info!(%sid, file = %path.display(), "made a SID for the server");
    }
    Ok(sid)
}

fn read(path: &Path) -> io::Result<Sid> {
    let text = match fs::metadata(path)?.len() {
        0..=LEN_MAX => fs::read_to_string(path)?,
        _ => String::new(),
    };
    let sid = text.trim().parse::<Sid>().ok();
    let sid = sid.filter(|sid| sid.is_of_machine_or_domain() && sid.sub_authorities().len() == 4);
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not a SID S-1-5-21-A-B-C");
    sid.ok_or_else(invalid)
}

/// Stores a new SID, on stable storage before the file has its name. An existing file stays.
fn make(directory: &Path, path: &Path) -> io::Result<Sid> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory)?;
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = directory.join(format!(".{FILE}.{}.{number}", std::process::id()));
    let sid = random();
    let linked = write(&draft, sid).and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    let _ = fs::remove_file(&draft);
    linked?;
    File::open(directory)?.sync_all()?;
    Ok(sid)
}

fn write(path: &Path, sid: Sid) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o644);
    let mut file = options.open(path)?;
    writeln!(file, "{sid}")?;
    file.sync_all()
}

fn random() -> Sid {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes).expect("the kernel has random bytes");
    let (numbers, _) = bytes.as_chunks::<4>();
    let mut parts = vec![NON_UNIQUE];
    parts.extend(numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)));
    Sid::new(NT_AUTHORITY, &parts).expect("four numbers")
}

#[cfg(test)]
mod tests {
    use std::thread::ScopedJoinHandle;

    use super::*;

    #[test]
    fn the_sid_is_the_same_after_a_restart() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("not/yet/there");
        let sid = load(&state);
        assert!(sid.is_of_machine_or_domain());
        assert_eq!(load(&state), sid);
        let other = load(&directory.path().join("other"));
        assert_ne!(other, sid);
        let names = fs::read_dir(&state).expect("the directory");
        assert_eq!(names.count(), 1, "no draft remains");
    }

    #[test]
    fn servers_that_start_at_the_same_time_have_one_sid() {
        let directory = tempfile::tempdir().expect("a directory");
        let load = || load(directory.path());
        let sids: Vec<Sid> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(load)).collect();
            let joined = threads.into_iter().map(ScopedJoinHandle::join);
            joined.map(|sid| sid.expect("no panic")).collect()
        });
        assert!(sids.iter().all(|sid| *sid == sids[0]));
    }

    #[test]
    fn a_bad_file_is_not_overwritten() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join(FILE);
        for text in [
            "",
            "S-1-5-18\n",
            "S-1-5-21-1-2\n",
            "nothing",
            &"S".repeat(9_999),
        ] {
            fs::write(&file, text).expect("a file");
            assert!(load(directory.path()).is_of_machine_or_domain());
            assert_eq!(fs::read_to_string(&file).expect("the file"), text);
        }
        fs::write(&file, "S-1-5-21-1-2-3").expect("a file");
        assert_eq!(load(directory.path()).to_string(), "S-1-5-21-1-2-3");
    }
}
