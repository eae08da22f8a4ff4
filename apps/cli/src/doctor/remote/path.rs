//! The components of a path on a share, and a small read of the file.

use smbeam_client::{AccessMask, Metadata, OpenOptions, Share, Wait as _};
use smbeam_server::Reason as _;
use smbeam_server::doctor::{Check, Diagnosis};

use super::failures::{self, Step};
use crate::location::Url;

/// Bytes that the doctor reads from a file.
const READ_BYTES: usize = 4096;

pub(super) fn examine(url: &Url, share: &Share, checks: &mut Vec<Check>) {
    let mut path = String::new();
    let mut metadata = match share.metadata("").wait() {
        Ok(metadata) => metadata,
        Err(error) => return checks.push(failures::check(Step::Path, "/", &error)),
    };
    let names = url.path.split('/').filter(|name| !name.is_empty());
    for name in names {
        if !metadata.is_dir() {
            let code = Diagnosis::PathNotDirectory.code();
            let message = "it is a file, and the path goes on";
            return checks.push(Check::refused(format!("/{path}"), code, message));
        }
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(name);
        metadata = match share.metadata(&path).wait() {
            Ok(metadata) => metadata,
            Err(error) => {
                let subject = format!("/{path}");
                return checks.push(failures::check(Step::Path, &subject, &error));
            }
        };
        let kind = if metadata.is_dir() {
            "directory"
        } else {
            "file"
        };
        checks.push(Check::ok(format!("/{path}"), format!("a {kind}")));
    }
    let subject = format!("/{path}");
    if let Ok(Some(rights)) = share.maximal_access_of(&path).wait() {
        checks.push(Check::ok(&subject, format!("rights: {}", shown(rights))));
    }
    checks.push(match metadata.is_dir() {
        true => list(share, &path, &subject),
        false => read(share, &path, &subject, &metadata),
    });
}

fn list(share: &Share, path: &str, subject: &str) -> Check {
    let listed = share.read_dir(path, "*").wait();
    let first = listed.and_then(|mut entries| match entries.next().wait() {
        Some(Err(error)) => Err(error),
        Some(Ok(_)) => Ok("it can be listed"),
        None => Ok("it can be listed, and is empty"),
    });
    match first {
        Ok(message) => Check::ok(subject, message),
        Err(error) => failures::check(Step::Path, subject, &error),
    }
}

fn read(share: &Share, path: &str, subject: &str, metadata: &Metadata) -> Check {
    let opened = share.open(path, &OpenOptions::new().read(true)).wait();
    let done = opened.and_then(|file| {
        let length = READ_BYTES.min(usize::try_from(metadata.size).unwrap_or(READ_BYTES));
        let read = match length {
            0 => 0,
            length => file.read(length, 0).wait()?.len(),
        };
        file.close().wait()?;
        Ok(read)
    });
    match done {
        Ok(count) => Check::ok(subject, format!("{count} bytes read")),
        Err(error) => failures::check(Step::Path, subject, &error),
    }
}

/// The names of the rights of the user.
fn shown(rights: AccessMask) -> String {
    let known = [
        (AccessMask::FILE_READ_DATA, "read"),
        (AccessMask::FILE_WRITE_DATA, "write"),
        (AccessMask::DELETE, "delete"),
        (AccessMask::WRITE_DAC, "change permissions"),
        (AccessMask::WRITE_OWNER, "take ownership"),
    ];
    let held = known.iter().filter(|(right, _)| rights.contains(*right));
    let held: Vec<&str> = held.map(|(_, name)| *name).collect();
    match held.is_empty() {
        true => "attributes only".to_owned(),
        false => held.join(", "),
    }
}
