//! The files of a tree, several directories at the same time.

use crate::connect::{ConnectArguments, Connector};
use crate::descriptor;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, FileInfo, FilePath, Kind, RemotePath};
use crate::location::Url;
use crate::report::Report;
use crate::transfer::pool::{self, Queue};

/// Directories and files that are handled at the same time.
const WORKERS: usize = 16;
/// Maximum depth of directories. A hostile server could claim an endless tree.
const MAX_DEPTH: u32 = 512;

struct Job {
    path: RemotePath,
    info: FileInfo,
    depth: u32,
}

/// Calls `each` for the files and directories at `urls`, and with `is_recursive` for everything
/// below them. See [`tree`].
pub(crate) fn trees(
    urls: &[Url],
    connect: &ConnectArguments,
    is_recursive: bool,
    report: &Report,
    each: &(dyn Fn(&RemotePath, &FileInfo) -> Outcome + Sync),
) {
    let connector = Connector::new(connect);
    for url in urls {
        let path = connector.remote_path(url);
        if let Err(failure) = path.and_then(|path| tree(&path, is_recursive, report, each)) {
            report.failed(&failure);
        }
        if report.is_over() {
            break;
        }
    }
}

/// Calls `each` for the file or directory, and with `is_recursive` for everything below it. Fails
/// if the server keeps no access control lists. A directory comes before its entries. Links are
/// skipped: a descriptor of a link would be that of its target.
pub(super) fn tree(
    path: &RemotePath,
    is_recursive: bool,
    report: &Report,
    each: &(dyn Fn(&RemotePath, &FileInfo) -> Outcome + Sync),
) -> Outcome {
    let info = FilePath::Remote(path.clone()).info(true)?;
    descriptor::check(path)?;
    let first = vec![Job {
        path: path.clone(),
        info,
        depth: 0,
    }];
    pool::run(WORKERS, first, &|job: Job, queue: &Queue<Job>| {
        if report.is_over() {
            return;
        }
        report.take(each(&job.path, &job.info));
        if is_recursive
            && job.info.is_directory()
            && let Err(failure) = list(&job, report, queue, each)
        {
            report.failed(&failure);
        }
    });
    Ok(())
}

fn list(
    job: &Job,
    report: &Report,
    queue: &Queue<Job>,
    each: &(dyn Fn(&RemotePath, &FileInfo) -> Outcome + Sync),
) -> Outcome {
    if job.depth > MAX_DEPTH {
        let reason = "directories are nested too deeply";
        return Err(Failure::new(Exit::Failed, &job.path, reason));
    }
    let directory = FilePath::Remote(job.path.clone());
    directory.list(Detail::Brief, &mut |entry| {
        let below = entry.and_then(|entry| {
            let below = directory.listed(&entry.name);
            let below = below.map_err(|error| Failure::name(&directory, error))?;
            Ok((below, entry.info))
        });
        match below {
            Ok((_, info)) if info.kind == Kind::Link => {}
            Ok((FilePath::Remote(path), info)) => {
                let below = Job {
                    path,
                    info,
                    depth: job.depth + 1,
                };
                match info.is_directory() {
                    true => queue.push_directory(below),
                    false => {
                        if let Some(below) = queue.push_file(below) {
                            report.take(each(&below.path, &below.info));
                        }
                    }
                }
            }
            Ok((FilePath::Local(_), _)) => {}
            Err(failure) => report.failed(&failure),
        }
        !report.is_over()
    })
}
