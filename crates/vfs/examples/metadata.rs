//! Measures how fast names are created, found and listed: `cargo run --release --example metadata
//! [DIRECTORY]`.
//!
//! Each figure is the work of one thread through the trait: first without blocking and then with
//! it, as a worker and its blocking pool do, without the hop between them. As root it acts for user
//! 1000.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use proto::file::{
    DirectoryPlan, Existing, FileOp, KindWanted, LocalOpen, OpenPlan, Operation, Outcome, Select,
    ShareId,
};
use proto::path::SharePath;
use proto::token::Token;
use smbeam_vfs::posix::{Options, Posix};
use smbeam_vfs::{Attempt, Effort, FileSystem, identity};
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

const SHARE: ShareId = ShareId(0);
const ALL: AccessMask = AccessMask(0x001F_01FF);

struct Bench {
    posix: Posix,
    token: Arc<Token>,
    /// Number of attempts that would have had to wait.
    waits: u64,
}

impl Bench {
    fn run(&mut self, op: &FileOp) -> Result<Outcome, Status> {
        match self.posix.execute(op, Effort::Cached) {
            Attempt::Done(outcome) => outcome,
            Attempt::WouldBlock => {
                self.waits += 1;
                self.posix
                    .execute(op, Effort::Blocking)
                    .done()
                    .expect("it waited")
            }
        }
    }

    fn open(&mut self, path: &str, existing: Existing, kind: KindWanted) -> Option<LocalOpen> {
        let plan = OpenPlan {
            share: SHARE,
            token: self.token.clone(),
            path: SharePath::from_trusted(path),
            access: ALL,
            implied_access: AccessMask::NONE,
            existing,
            kind,
            attributes: FileAttributes::NONE,
            allocation: 0,
            security: None,
            open_link: false,
            posix: None,
        };
        match self.run(&FileOp::Open(plan)) {
            Ok(outcome) => Some(outcome.expect_opened().file),
            Err(Status::OBJECT_NAME_NOT_FOUND) => None,
            Err(other) => panic!("{path}: {other:?}"),
        }
    }

    fn close(&mut self, file: LocalOpen) {
        self.run(&FileOp::OnOpen(file, Operation::Close))
            .expect("a close never fails");
    }

    fn create(&mut self, path: &str) {
        let file = self
            .open(path, Existing::Create, KindWanted::File)
            .expect("a new file");
        self.close(file);
    }

    fn list(&mut self, path: &str) -> u32 {
        let file = self
            .open(path, Existing::Open, KindWanted::Directory)
            .expect("a directory");
        let (mut count, mut restart) = (0, true);
        loop {
            let plan = DirectoryPlan {
                restart,
                select: Select::All,
                limit: 1000,
            };
            let listed = self.run(&FileOp::OnOpen(file, Operation::ReadDirectory(plan)));
            let entries = listed.expect("a listing").expect_directory();
            restart = false;
            count += entries.len() as u32;
            if entries.is_empty() {
                self.close(file);
                return count;
            }
        }
    }

    /// Measures `count` runs of a function.
    fn time(&mut self, label: &str, count: u32, run: impl FnOnce(&mut Self)) {
        self.waits = 0;
        let (start, cpu) = (Instant::now(), cpu_ns());
        run(self);
        let each = |ns: u128| ns as f64 / 1e3 / f64::from(count);
        let (wall, cpu) = (each(start.elapsed().as_nanos()), each(cpu_ns() - cpu));
        println!(
            "{label:42} {wall:7.2} us  cpu {cpu:6.2} us  {:6} waits",
            self.waits
        );
    }
}

/// CPU time of this thread in nanoseconds, which other load affects little.
fn cpu_ns() -> u128 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("statistics");
    let first = stat.split(' ').next().expect("a number");
    first.parse().expect("a number")
}

fn main() {
    let base = std::env::args()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::TempDir::new_in(&base).expect("a directory");
    if identity::switches() {
        std::os::unix::fs::chown(directory.path(), Some(1000), Some(1000)).expect("a chown");
    }
    let posix = Posix::new(SHARE, directory.path(), Options::default()).expect("a share");
    let token = Arc::new(Token::new(1000, 1000, vec![]));
    let mut bench = Bench {
        posix,
        token,
        waits: 0,
    };
    for directory in ["d", "e", "big"] {
        let made = bench.open(directory, Existing::Create, KindWanted::Directory);
        bench.close(made.expect("a new directory"));
    }
    names(&mut bench);
    listing(&mut bench);
    two_users(&mut bench);
    identity::own().expect("the server itself");
}

fn names(bench: &mut Bench) {
    let name = |d: &str, n: u32| format!("{d}/File{n:06}.txt");
    bench.time("create + close, 10,000 in one directory", 10_000, |bench| {
        (0..10_000).for_each(|n| bench.create(&name("d", n)));
    });
    bench.time(
        "failing look-up + create + close, 10,000",
        10_000,
        |bench| {
            for n in 0..10_000 {
                let missing = bench.open(&name("e", n), Existing::Open, KindWanted::Any);
                assert!(missing.is_none());
                bench.create(&name("e", n));
            }
        },
    );
    bench.time("open + close, exact name", 10_000, |bench| {
        for n in 0..10_000 {
            let file = bench.open(&name("d", n), Existing::Open, KindWanted::Any);
            bench.close(file.expect("a file"));
        }
    });
    bench.time("open + close, name of other case", 10_000, |bench| {
        for n in 0..10_000 {
            let name = name("d", n).to_uppercase();
            let file = bench.open(&name, Existing::Open, KindWanted::Any);
            bench.close(file.expect("a file"));
        }
    });
    bench.time("open + unlink + close", 10_000, |bench| {
        for n in 0..10_000 {
            let path = SharePath::from_trusted(&name("e", n));
            let file = bench
                .open(path.as_str(), Existing::Open, KindWanted::Any)
                .expect("a file");
            bench
                .run(&FileOp::OnOpen(file, Operation::Unlink { path }))
                .expect("unlinked");
            bench.close(file);
        }
    });
}

fn listing(bench: &mut Bench) {
    bench.time(
        "create + close, 100,000 in one directory",
        100_000,
        |bench| {
            (0..100_000).for_each(|n| bench.create(&format!("big/File{n:06}.txt")));
        },
    );
    for _ in 0..3 {
        bench.time("list 100,000 entries, for each", 100_000, |bench| {
            assert_eq!(bench.list("big"), 100_002);
        });
    }
}

fn two_users(bench: &mut Bench) {
    let tokens = [1000, 1001].map(|uid| Arc::new(Token::new(uid, uid, vec![uid])));
    bench.time("become another user", 100_000, |_| {
        for n in 0..100_000 {
            identity::assume(&tokens[n % 2]).expect("assumed");
        }
    });
}
