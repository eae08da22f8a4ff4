//! Chooses the operations, sends them to the two processes in turn, and compares the answers with
//! the expected files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use smbeam_tests::random::Random;

use crate::model::{FileId, Model, State};
use crate::operation::{Answer, Operation, PAGE, SLOTS, data, pages};

/// The largest size of a file in bytes.
const MAX_SIZE: u64 = 48 << 10;
/// The largest length of a read or write in bytes.
const MAX_LENGTH: u64 = 12 << 10;
/// The directories with files.
const DIRECTORIES: [&str; 2] = ["one", "two"];
/// The directory with empty directories.
const NAMES: &str = "names";
/// Number of the names in [`NAMES`].
const NAME_COUNT: u64 = 5;
/// Number of the files that exist at a time.
const FILES: usize = 10;
/// Number of the former names of files that operations use.
const FORMER_NAMES: usize = 5;
/// The time for which an answer about names and sizes may be out of date: cifs.ko keeps attributes
/// and names for one second (`actimeo=1`), to which the time of the operations adds.
const ATTRIBUTE_AGE: Duration = Duration::from_secs(10);
/// A break that needs no acknowledgment can arrive after the answer to the operation that caused
/// it. An answer with wrong data is requested again until this limit.
const BREAK_LIMIT: Duration = Duration::from_secs(30);
const BREAK_PAUSE: Duration = Duration::from_millis(2);
/// Number of the last operations that a failure reports.
const HISTORY: usize = 24;
const ENOENT: i32 = 2;
const EEXIST: i32 = 17;
const EINVAL: i32 = 22;

/// The operations that the kernel can perform with the options of the mounts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// Whether directories with files are listed.
    pub(crate) lists_files: bool,
    /// Whether both processes write to a file.
    pub(crate) shares_writes: bool,
}

/// A process on one of the mounts.
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The files that it has open.
    slots: [Option<FileId>; SLOTS],
    /// When it last had a file open.
    opened: BTreeMap<FileId, Instant>,
    /// The files that it has looked up.
    known: BTreeSet<FileId>,
}

/// The verdict about an answer.
enum Verdict {
    /// It is the expected one.
    Current,
    /// Names or sizes were right a short time ago.
    OutOfDate,
    /// It is wrong, and why.
    Wrong(String),
}

#[derive(Default)]
struct Counts {
    operations: u64,
    /// Number of the names that files have had.
    names: u64,
    reads: u64,
    out_of_date: u64,
    late: u64,
    latest: Duration,
}

struct Checker {
    processes: [Process; 2],
    model: Model,
    random: Random,
    options: Options,
    /// The process that created a file, until the other one opens the file or the file is closed.
    owners: BTreeMap<FileId, usize>,
    /// The last former names of files.
    former: VecDeque<String>,
    counts: Counts,
    history: VecDeque<String>,
}

/// Performs random operations in the two directories, which are one directory of the share.
pub(crate) fn run(
    directories: [&Path; 2],
    seed: u64,
    operations: u64,
    options: Options,
) -> Result<()> {
    let [a, b] = directories;
    let mut checker = Checker {
        processes: [Process::start(a)?, Process::start(b)?],
        model: Model::default(),
        random: Random::new(seed),
        options,
        owners: BTreeMap::new(),
        former: VecDeque::new(),
        counts: Counts::default(),
        history: VecDeque::new(),
    };
    for path in DIRECTORIES.into_iter().chain([NAMES]) {
        checker.perform(0, &Operation::MakeDirectory { path: path.into() })?;
    }
    for _ in 0..operations {
        let process = usize::from(checker.random.below(2) == 1);
        let operation = checker.choose(process);
        checker.perform(process, &operation)?;
    }
    checker.compare_all()?;
    let Counts {
        operations,
        names: _,
        reads,
        out_of_date,
        late,
        latest,
    } = checker.counts;
    println!(
        "coherence: {operations} operations with seed {seed}: {reads} reads of data, {late} late \
         by up to {} ms; {out_of_date} answers from cached attributes",
        latest.as_millis()
    );
    Ok(())
}

impl Process {
    fn start(directory: &Path) -> Result<Process> {
        let mut child = Command::new(env::current_exe()?)
            .arg("worker")
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().context("the input was piped")?;
        let output = child.stdout.take().context("the output was piped")?;
        Ok(Process {
            child,
            input,
            output: BufReader::new(output),
            slots: [None; SLOTS],
            opened: BTreeMap::new(),
            known: BTreeSet::new(),
        })
    }

    fn ask(&mut self, operation: &Operation) -> Result<Answer> {
        let mut line = serde_json::to_string(operation)?;
        line.push('\n');
        self.input.write_all(line.as_bytes())?;
        line.clear();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).context("the process does not answer")
    }

    /// Whether the kernel may have a lease on the file. A close is delayed, by one second at most.
    fn may_have_lease(&self, id: FileId) -> bool {
        let is_recent = |time: &Instant| time.elapsed() < ATTRIBUTE_AGE;
        self.slots.contains(&Some(id)) || self.opened.get(&id).is_some_and(is_recent)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Checker {
    /// The next operation of `process`.
    fn choose(&mut self, process: usize) -> Operation {
        let slot = usize::from(self.random.below(SLOTS as u64) == 1);
        let held = self.processes[process].slots[slot];
        let path = self.path();
        let choice = self.random.below(100);
        match (choice, held) {
            (0..=55, Some(id)) => self.choose_for_open_file(choice, slot, id),
            (0..=29, None) => Operation::Open { slot, path },
            (30..=55, None) if self.model.files().len() < FILES => {
                let path = self.new_path();
                Operation::Create { slot, path }
            }
            (30..=55, None) => Operation::Unlink { path },
            (56..=71, _) => Operation::Get { path },
            (72..=82, _) => Operation::Stat { path },
            (83..=88, _) => self.choose_list(),
            (89..=93, _) => Operation::Rename {
                from: path,
                to: self.new_path(),
            },
            (94..=95, _) => Operation::Unlink { path },
            (96, _) => Operation::Stat { path: self.name() },
            (97, _) => Operation::RemoveDirectory { path: self.name() },
            _ => Operation::MakeDirectory { path: self.name() },
        }
    }

    fn choose_for_open_file(&mut self, choice: u64, slot: usize, id: FileId) -> Operation {
        let size = self.model.content(id).len() as u64;
        let length = self.length();
        match choice {
            0..=17 => Operation::Write {
                slot,
                offset: self.offset(size + 1).min(MAX_SIZE - length as u64),
                length,
                seed: self.random.number(),
            },
            18..=37 => Operation::Read {
                slot,
                offset: self.offset(size + 1),
                length,
            },
            38..=41 => Operation::Truncate {
                slot,
                size: self.offset(MAX_SIZE),
            },
            42..=44 => Operation::Sync { slot },
            45..=49 => Operation::Size { slot },
            _ => Operation::Close { slot },
        }
    }

    fn choose_list(&mut self) -> Operation {
        let path = match self.random.below(4) {
            0 if self.options.lists_files => DIRECTORIES[0],
            1 if self.options.lists_files => DIRECTORIES[1],
            2 => ".",
            _ => NAMES,
        };
        Operation::List { path: path.into() }
    }

    fn name(&mut self) -> String {
        format!("{NAMES}/{}", self.random.below(NAME_COUNT))
    }

    /// The name of a file, or a former one. Names are not reused: Linux 7.2 mixes up a file with
    /// the former file of its name.
    fn path(&mut self) -> String {
        let live = self.model.files();
        let is_former = live.is_empty() || self.random.below(10) == 0;
        let former = self.former.iter().cloned().collect::<Vec<_>>();
        let names = match is_former && !former.is_empty() {
            true => former,
            false => live,
        };
        match names.len() {
            0 => self.new_path(),
            count => names[self.index(count)].clone(),
        }
    }

    fn new_path(&mut self) -> String {
        let directory = DIRECTORIES[self.index(DIRECTORIES.len())];
        self.counts.names += 1;
        format!("{directory}/{}", self.counts.names)
    }

    fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.random.below(count as u64)).unwrap_or(0)
    }

    /// An offset below `limit`; the starts of pages are as likely as others.
    fn offset(&mut self, limit: u64) -> u64 {
        let offset = self.random.below(limit);
        match self.random.below(2) {
            0 => offset - offset % PAGE as u64,
            _ => offset,
        }
    }

    fn length(&mut self) -> usize {
        let length = match self.random.below(3) {
            0 => 1 + self.random.below(300),
            1 => PAGE as u64 * (1 + self.random.below(MAX_LENGTH / PAGE as u64)),
            _ => 1 + self.random.below(MAX_LENGTH),
        };
        usize::try_from(length).unwrap_or(PAGE)
    }

    /// Performs an operation and compares the answer. Operations that SMB cannot perform on open
    /// files are left out.
    fn perform(&mut self, process: usize, operation: &Operation) -> Result<()> {
        if !self.is_possible(process, operation) {
            return Ok(());
        }
        self.note(format!("{} {operation:?}", ["A", "B"][process]));
        self.counts.operations += 1;
        self.show(process, operation);
        let start = Instant::now();
        let mut attempts = 0;
        loop {
            let asked = self.processes[process].ask(operation);
            let answer = asked.with_context(|| self.recent())?;
            attempts += 1;
            match self.judge(process, operation, &answer) {
                Verdict::Current => {
                    self.apply(process, operation, &answer);
                    break;
                }
                Verdict::OutOfDate => {
                    self.counts.out_of_date += 1;
                    self.leave(process, operation, &answer)?;
                    break;
                }
                Verdict::Wrong(reason) => {
                    self.note(format!("  {reason}"));
                    let is_read = matches!(
                        operation,
                        Operation::Read { .. } | Operation::Get { .. } | Operation::Open { .. }
                    );
                    if !is_read || start.elapsed() > BREAK_LIMIT {
                        bail!("after {attempts} attempts: {}", self.recent());
                    }
                }
            }
            thread::sleep(BREAK_PAUSE);
        }
        if attempts > 1 {
            self.counts.late += 1;
            self.counts.latest = self.counts.latest.max(start.elapsed());
        }
        Ok(())
    }

    /// Notes which files an operation of the process shows to it. An open by the other process
    /// takes the lease to write from the owner of a file.
    fn show(&mut self, process: usize, operation: &Operation) {
        let paths: Vec<String> = match operation {
            Operation::Open { path, .. } | Operation::Get { path } => {
                if let State::File(id) = self.model.state(path)
                    && self.owners.get(&id).is_some_and(|owner| *owner != process)
                {
                    self.owners.remove(&id);
                }
                vec![path.clone()]
            }
            Operation::Stat { path }
            | Operation::Create { path, .. }
            | Operation::Unlink { path }
            | Operation::Rename { from: path, .. } => vec![path.clone()],
            Operation::List { path } => {
                let names = self.model.names_in(path).into_iter();
                names.map(|name| format!("{path}/{name}")).collect()
            }
            _ => Vec::new(),
        };
        for path in paths {
            if let State::File(id) = self.model.state(&path) {
                self.processes[process].known.insert(id);
            }
        }
    }

    /// Whether the owner of a file may make it longer. Linux 7.2 reads zeros behind the end that it
    /// knew of a file that another client extends.
    fn may_grow(&self, process: usize, id: FileId) -> bool {
        self.options.shares_writes || !self.processes[1 - process].known.contains(&id)
    }

    /// Whether the kernel can perform the operation. SMB deletes an open file when it is closed.
    fn is_possible(&self, process: usize, operation: &Operation) -> bool {
        match operation {
            Operation::Write {
                slot,
                offset,
                length,
                ..
            } => self.may_write(process, *slot, offset + *length as u64),
            Operation::Truncate { slot, size } => self.may_write(process, *slot, *size),
            // A kernel that had a file open for writing believes in its own size.
            Operation::Size { .. } | Operation::Stat { .. } => !self.options.shares_writes,
            Operation::Unlink { path } => !self.is_open(path),
            Operation::Rename { from, .. } => {
                matches!(self.model.state(from), State::File(_)) && !self.is_open(from)
            }
            _ => true,
        }
    }

    fn may_write(&self, process: usize, slot: usize, end: u64) -> bool {
        let Some(id) = self.processes[process].slots[slot] else {
            return false;
        };
        let is_owner = self.owners.get(&id) == Some(&process);
        let grows = end > self.model.size(id);
        (is_owner || self.options.shares_writes) && (!grows || self.may_grow(process, id))
    }

    fn is_open(&self, path: &str) -> bool {
        let State::File(id) = self.model.state(path) else {
            return false;
        };
        let mut slots = self.processes.iter().flat_map(|process| process.slots);
        slots.any(|slot| slot == Some(id))
    }

    fn judge(&mut self, process: usize, operation: &Operation, answer: &Answer) -> Verdict {
        let file = |slot: usize| self.processes[process].slots[slot];
        match operation {
            Operation::Read {
                slot,
                offset,
                length,
            } => {
                self.counts.reads += 1;
                let content = file(*slot).map_or(&[][..], |id| self.model.content(id));
                let start = usize::try_from(*offset)
                    .unwrap_or(usize::MAX)
                    .min(content.len());
                let end = (start + length).min(content.len());
                judge_data(&content[start..end], answer)
            }
            Operation::Get { path } => {
                self.counts.reads += 1;
                self.judge_open(process, path, answer, Some(judge_data))
            }
            Operation::Size { slot } => match file(*slot) {
                Some(id) => self.judge_size(id, answer),
                None => Verdict::Wrong("no file is open".into()),
            },
            Operation::Stat { path } => self.judge_stat(process, path, answer),
            Operation::List { path } => self.judge_list(process, path, answer),
            Operation::Create { path, .. } | Operation::MakeDirectory { path } => {
                self.judge_name(process, path, false, EEXIST, answer)
            }
            Operation::Open { path, .. } => self.judge_open(process, path, answer, None),
            Operation::Unlink { path }
            | Operation::RemoveDirectory { path }
            | Operation::Rename { from: path, .. } => {
                self.judge_name(process, path, true, ENOENT, answer)
            }
            Operation::Write { .. }
            | Operation::Truncate { .. }
            | Operation::Sync { .. }
            | Operation::Close { .. } => match answer.errno {
                None => Verdict::Current,
                Some(errno) => Verdict::Wrong(format!("error {errno}")),
            },
        }
    }

    /// Judges an operation that succeeds where the name exists or is absent, as `needs_name` says,
    /// and fails with `error` otherwise.
    fn judge_name(
        &self,
        process: usize,
        path: &str,
        needs_name: bool,
        error: i32,
        answer: &Answer,
    ) -> Verdict {
        let fits = |state: State| (state != State::Absent) == needs_name;
        let state = self.model.state(path);
        match answer.errno {
            None if fits(state) => Verdict::Current,
            Some(errno) if errno == error && !fits(state) => Verdict::Current,
            Some(errno) if errno == error => {
                match self.may_remember(process, path, |state| !fits(state)) {
                    true => Verdict::OutOfDate,
                    false => Verdict::Wrong(format!("error {errno} for {path}: {state:?}")),
                }
            }
            // The kernel opens the former name with the lease key of the file.
            Some(EINVAL) if self.may_remember(process, path, |former| former != state) => {
                Verdict::OutOfDate
            }
            errno => Verdict::Wrong(format!("error {errno:?} for {path}: {state:?}")),
        }
    }

    /// Whether the kernel of `process` may believe that a name has a state with `condition`: the
    /// name had it a short time ago. cifs.ko also keeps the former name of a file as long as it has
    /// a lease on the file.
    fn may_remember(&self, process: usize, path: &str, condition: impl Fn(State) -> bool) -> bool {
        let mut recent = self.model.recent_states(path, ATTRIBUTE_AGE);
        let mut former = self.model.former_files(path);
        let process = &self.processes[process];
        recent.any(&condition)
            || former.any(|id| process.may_have_lease(id) && condition(State::File(id)))
    }

    /// Judges the answer to an open of an existing file, and the data in it by `judge`. A kernel
    /// that remembers the former file of the name and has it open may open that.
    fn judge_open(
        &self,
        process: usize,
        path: &str,
        answer: &Answer,
        judge: Option<fn(&[u8], &Answer) -> Verdict>,
    ) -> Verdict {
        if answer.errno.is_some() {
            return self.judge_name(process, path, true, ENOENT, answer);
        }
        let judge = |id| judge.map_or(Verdict::Current, |f| f(self.model.content(id), answer));
        let state = self.model.state(path);
        match (state, self.former_file(process, path, answer)) {
            (State::File(id), _) if self.model.has_inode(id, answer.inode) => judge(id),
            (_, Some(id)) => match judge(id) {
                Verdict::Current => Verdict::OutOfDate,
                verdict => verdict,
            },
            _ => Verdict::Wrong(format!("{path} opens {:?}: {state:?}", answer.inode)),
        }
    }

    /// The former file of the name, which the kernel of `process` opened instead of a present one.
    fn former_file(&self, process: usize, path: &str, answer: &Answer) -> Option<FileId> {
        let mut former = self.model.former_files(path);
        let process = &self.processes[process];
        former.find(|id| self.model.has_inode(*id, answer.inode) && process.may_have_lease(*id))
    }

    fn judge_size(&self, id: FileId, answer: &Answer) -> Verdict {
        let size = self.model.size(id);
        match answer.size {
            Some(found) if found == size => Verdict::Current,
            Some(found) if self.model.had_size(id, found, ATTRIBUTE_AGE) => Verdict::OutOfDate,
            _ => Verdict::Wrong(format!("{answer:?} instead of a size of {size}")),
        }
    }

    fn judge_stat(&self, process: usize, path: &str, answer: &Answer) -> Verdict {
        let fits = |state: State| match state {
            State::File(id) => !matches!(self.judge_size(id, answer), Verdict::Wrong(_)),
            State::Directory => answer.errno.is_none(),
            State::Absent => answer.errno == Some(ENOENT),
        };
        match self.model.state(path) {
            State::File(id) if fits(State::File(id)) => self.judge_size(id, answer),
            state if fits(state) => Verdict::Current,
            _ if self.may_remember(process, path, fits) => Verdict::OutOfDate,
            state => Verdict::Wrong(format!("{answer:?} instead of {state:?}")),
        }
    }

    fn judge_list(&self, process: usize, directory: &str, answer: &Answer) -> Verdict {
        if answer.errno.is_some() {
            return Verdict::Wrong(format!("{answer:?}"));
        }
        let mut verdict = Verdict::Current;
        let known = self.model.names_in(directory);
        for name in known.iter().chain(&answer.names) {
            let path = match directory {
                "." => name.clone(),
                _ => format!("{directory}/{name}"),
            };
            let is_listed = answer.names.contains(name);
            let fits = |state: State| (state != State::Absent) == is_listed;
            if fits(self.model.state(&path)) {
                continue;
            }
            if !self.may_remember(process, &path, fits) {
                let state = self.model.state(&path);
                return Verdict::Wrong(format!("{path} is {state:?}; listed: {:?}", answer.names));
            }
            verdict = Verdict::OutOfDate;
        }
        verdict
    }

    /// Closes the file that an open with a former name opened.
    fn leave(&mut self, process: usize, operation: &Operation, answer: &Answer) -> Result<()> {
        let (Operation::Open { path, .. } | Operation::Get { path }) = operation else {
            return Ok(());
        };
        if let Some(id) = self.former_file(process, path, answer) {
            self.processes[process].opened.insert(id, Instant::now());
        }
        match operation {
            Operation::Open { slot, .. } if answer.errno.is_none() => {
                let close = Operation::Close { slot: *slot };
                self.processes[process].ask(&close).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Changes the expected files as a successful operation does.
    fn apply(&mut self, process: usize, operation: &Operation, answer: &Answer) {
        if answer.errno.is_some() {
            return;
        }
        let Process { slots, opened, .. } = &mut self.processes[process];
        match operation {
            Operation::Create { slot, path } => {
                let id = self.model.create(path, answer.inode);
                slots[*slot] = Some(id);
                self.owners.insert(id, process);
            }
            Operation::Open { slot, path } => {
                if let State::File(id) = self.model.state(path) {
                    slots[*slot] = Some(id);
                }
            }
            Operation::Close { slot } => {
                if let Some(id) = slots[*slot].take() {
                    self.owners.remove(&id);
                    opened.insert(id, Instant::now());
                }
            }
            Operation::Get { path } => {
                if let State::File(id) = self.model.state(path) {
                    opened.insert(id, Instant::now());
                }
            }
            Operation::Write {
                slot,
                offset,
                length,
                seed,
                ..
            } => {
                let offset = usize::try_from(*offset).unwrap_or(usize::MAX);
                if let Some(id) = slots[*slot] {
                    self.model.write(id, offset, &data(*length, *seed));
                }
            }
            Operation::Truncate { slot, size } => {
                if let Some(id) = slots[*slot] {
                    self.model
                        .resize(id, usize::try_from(*size).unwrap_or(usize::MAX));
                }
            }
            Operation::Rename { from, to } => {
                self.model.rename(from, to);
                self.forget(from);
            }
            Operation::Unlink { path } => {
                self.model.remove(path);
                self.forget(path);
            }
            Operation::RemoveDirectory { path } => self.model.remove(path),
            Operation::MakeDirectory { path } => self.model.make_directory(path),
            Operation::Read { .. }
            | Operation::Sync { .. }
            | Operation::Size { .. }
            | Operation::Stat { .. }
            | Operation::List { .. } => {}
        }
    }

    fn forget(&mut self, path: &str) {
        if self.former.len() == FORMER_NAMES {
            self.former.pop_front();
        }
        self.former.push_back(path.into());
    }

    /// Closes every file and reads all of them by both processes.
    fn compare_all(&mut self) -> Result<()> {
        for process in 0..2 {
            for slot in 0..SLOTS {
                self.perform(process, &Operation::Close { slot })?;
            }
        }
        for process in 0..2 {
            for path in self.model.files() {
                self.perform(process, &Operation::Get { path })?;
            }
        }
        Ok(())
    }

    fn note(&mut self, text: String) {
        if self.history.back() == Some(&text) {
            return;
        }
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(text);
    }

    fn recent(&self) -> String {
        let last: Vec<_> = self.history.iter().map(String::as_str).collect();
        format!("the last operations were:\n  {}", last.join("\n  "))
    }
}

fn judge_data(expected: &[u8], answer: &Answer) -> Verdict {
    if let Some(errno) = answer.errno {
        return Verdict::Wrong(format!("error {errno}"));
    }
    let expected_pages = pages(expected);
    if answer.size == Some(expected.len() as u64) && answer.pages == expected_pages {
        return Verdict::Current;
    }
    let pairs = expected_pages.iter().zip(&answer.pages);
    let different: Vec<usize> = pairs
        .enumerate()
        .filter_map(|(page, (one, other))| (one != other).then_some(page))
        .collect();
    let (size, found) = (expected.len(), answer.size);
    Verdict::Wrong(format!(
        "{found:?} bytes instead of {size}, pages {different:?} differ"
    ))
}
