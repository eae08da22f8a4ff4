//! One run. Each session has its own thread, which keeps `depth` operations in flight.

use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use futures_util::future::try_join_all;
use smbeam_client::{OpenOptions, Region, SessionInfo, Wait as _};

use super::blocks::{Block, BlockSequence};
use super::cpu;
use super::options::{Arguments, Workload};
use super::pattern::Pattern;
use super::record::{Progress, Record};
use super::report::{Latency, Report};
use super::session_factory::SessionFactory;
use super::setting::Setting;
use super::test_files::{SessionFiles, TestFiles, drop_caches, pattern_number};
use crate::format::measured_rate;
use crate::output::note_text;

/// Interval between updates of the progress line.
const RATE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the check whether the run has ended.
const TICK: Duration = Duration::from_millis(50);

/// Creates the files, measures, and removes the files.
pub(crate) fn run(
    arguments: &Arguments,
    setting: &Setting,
    factory: &SessionFactory,
) -> Result<Report> {
    let test_files = TestFiles::set_up(arguments, setting, factory)?;
    if arguments.cold {
        drop_caches()?;
    } else if arguments.workload() != Workload::Write {
        test_files.warm_up(setting.io_size)?;
    }
    measure(arguments, setting, factory, &test_files)
}

/// Measures with files that exist.
pub(crate) fn measure(
    arguments: &Arguments,
    setting: &Setting,
    factory: &SessionFactory,
    test_files: &TestFiles,
) -> Result<Report> {
    // smbd has one process per connection, and the CPU time of a process ends with it. So the
    // workload `connect` cannot count it.
    let server = match arguments.workload() {
        Workload::Connect => None,
        _ => cpu::Server::of(&test_files.ends(), &factory.rdma),
    };
    let server_before = server.as_ref().map(cpu::Server::seconds);
    let client_before = cpu::own_seconds();
    let started = Instant::now();
    let record = run_sessions(arguments, setting, test_files, factory, started)?;
    let seconds = started.elapsed().as_secs_f64();
    let server_cpu = server.zip(server_before);
    let info = test_files.session().info();
    Ok(Report {
        workload: arguments.workload().name().to_owned(),
        url: factory.url.to_string(),
        session: session_line(&info),
        is_signed: info.is_signed,
        is_encrypted: info.is_encrypted,
        io_size: match arguments.workload().moves_data() {
            true => u64::from(setting.io_size),
            false => 0,
        },
        depth: setting.depth,
        channels: info.channels.len(),
        transports: transports(&info),
        connections: usize::from(arguments.connections),
        working_set: test_files.working_set,
        seconds,
        ops: record.ops,
        bytes: record.bytes,
        latency_us: Latency::of(&record),
        client_cpu: cpu::own_seconds() - client_before,
        server_cpu: server_cpu.map(|(server, before)| server.seconds() - before),
    })
}

/// Dialect, protection and transports of a session.
pub(crate) fn session_line(info: &SessionInfo) -> String {
    let protection = match (info.is_encrypted, info.is_signed, info.cipher) {
        (true, _, Some(cipher)) => format!("encrypted with {}", cipher.name()),
        (_, true, _) => format!("signed with {}", info.signing_algorithm.name()),
        _ => "neither signed nor encrypted".to_owned(),
    };
    format!(
        "SMB {}, {protection}, over {}",
        info.dialect,
        counted(&transports(info))
    )
}

/// The transport of each channel.
fn transports(info: &SessionInfo) -> Vec<String> {
    let channels = info.channels.iter();
    channels
        .map(|channel| channel.transport.name().to_owned())
        .collect()
}

/// Counts equal transports: `tcp`, or `tcp and 3 x quic`.
fn counted(transports: &[String]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in transports {
        match counts.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let texts = counts.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        _ => format!("{count} x {name}"),
    });
    texts.collect::<Vec<_>>().join(" and ")
}

/// Runs all sessions at once, and shows the progress on a terminal.
fn run_sessions(
    arguments: &Arguments,
    setting: &Setting,
    test_files: &TestFiles,
    factory: &SessionFactory,
    started: Instant,
) -> Result<Record> {
    let progress = Progress::default();
    let deadline = started + Duration::from_secs_f64(arguments.time);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let show = !arguments.json && !arguments.csv && std::io::stderr().is_terminal();
        if show {
            scope.spawn(|| show_rates(&progress, &is_over));
        }
        let runners = test_files
            .sessions
            .iter()
            .enumerate()
            .map(|(number, session_files)| SessionRunner {
                arguments,
                setting,
                directory: &test_files.directory,
                number,
                session_files,
                factory,
                progress: &progress,
                deadline,
            });
        let threads: Vec<_> = runners
            .map(|runner| scope.spawn(move || runner.run()))
            .collect();
        let records = threads.into_iter().map(thread::ScopedJoinHandle::join);
        let merged = merge(
            records
                .map(|joined| joined.map_err(|_| anyhow!("the thread of a session panicked"))?),
        );
        is_over.store(true, Ordering::Relaxed);
        merged
    })
}

fn merge(records: impl Iterator<Item = Result<Record>>) -> Result<Record> {
    let mut merged = Record::new()?;
    for record in records {
        merged.merge(&record?)?;
    }
    Ok(merged)
}

fn show_rates(progress: &Progress, is_over: &AtomicBool) {
    let mut last = (Instant::now(), progress.so_far());
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(TICK);
        let elapsed = last.0.elapsed();
        if elapsed < RATE_INTERVAL {
            continue;
        }
        let (ops, bytes) = progress.so_far();
        let seconds = elapsed.as_secs_f64();
        let rate = (ops - last.1.0) as f64 / seconds;
        let bytes_per_second = measured_rate((bytes - last.1.1) as f64 / seconds);
        note_text(&format!("\r{bytes_per_second:>12} {rate:12.0} ops/s "));
        last = (Instant::now(), (ops, bytes));
    }
    note_text(&format!("\r{:40}\r", ""));
}

/// The work of one session.
struct SessionRunner<'a> {
    arguments: &'a Arguments,
    setting: &'a Setting,
    directory: &'a str,
    number: usize,
    session_files: &'a SessionFiles,
    factory: &'a SessionFactory,
    progress: &'a Progress,
    deadline: Instant,
}

impl SessionRunner<'_> {
    fn run(&self) -> Result<Record> {
        let record = RefCell::new(Record::new()?);
        let blocks = self.blocks();
        let slots = (0..self.setting.depth).map(|slot| self.slot(slot, &blocks, &record));
        try_join_all(slots).wait()?;
        Ok(record.into_inner())
    }

    fn blocks(&self) -> BlockSequence {
        let files = self.session_files.files.len().max(1) as u64;
        let block_bytes = u64::from(self.setting.io_size);
        let sequence = BlockSequence::new(files, self.session_files.blocks_per_file, block_bytes);
        if self.arguments.random {
            sequence.shuffled(0x9E37_79B9_7F4A_7C15 ^ self.number as u64)
        } else {
            sequence
        }
    }

    /// Keeps one operation in flight until the deadline: at least one runs.
    async fn slot(
        &self,
        slot: usize,
        blocks: &BlockSequence,
        record: &RefCell<Record>,
    ) -> Result<()> {
        let len = match self.arguments.workload() {
            Workload::Write | Workload::Rw => self.setting.io_size as usize,
            _ => 0,
        };
        let mut buffer = Region::of_pages(len)?;
        Pattern::of(slot as u64).fill(0, &mut buffer);
        let mut round = 0;
        loop {
            let (moved, elapsed);
            (moved, elapsed, buffer) = self.operate(slot, round, blocks, buffer).await?;
            round += 1;
            self.progress.add(moved);
            record.borrow_mut().add(moved, elapsed);
            if Instant::now() >= self.deadline {
                return Ok(());
            }
        }
    }

    async fn operate(
        &self,
        slot: usize,
        round: u64,
        blocks: &BlockSequence,
        buffer: Region,
    ) -> Result<(u64, Duration, Region)> {
        let block = if self.arguments.torture {
            Block {
                file: slot,
                offset: 0,
            }
        } else {
            blocks.next()
        };
        match self.arguments.workload() {
            Workload::Read => self.read(block, buffer).await,
            Workload::Rw if blocks.percent() < self.arguments.reads => {
                self.read(block, buffer).await
            }
            Workload::Write => self.write(block, buffer).await,
            Workload::Rw => self.write(block, buffer).await,
            Workload::Meta => Ok((0, self.metadata(slot, round).await?, buffer)),
            Workload::Echo => Ok((0, self.echo().await?, buffer)),
            Workload::Connect => Ok((0, self.login().await?, buffer)),
        }
    }

    async fn read(&self, block: Block, buffer: Region) -> Result<(u64, Duration, Region)> {
        let len = self.setting.io_size as usize;
        let started = Instant::now();
        let bytes = self.session_files.files[block.file]
            .read(len, block.offset)
            .await?;
        let elapsed = started.elapsed();
        let count = bytes.len();
        ensure!(count == len, "a read returned only {count} bytes");
        if self.arguments.verify {
            self.pattern(block).check(block.offset, &bytes)?;
        }
        Ok((count as u64, elapsed, buffer))
    }

    async fn write(&self, block: Block, mut buffer: Region) -> Result<(u64, Duration, Region)> {
        // The written data equal the existing data, so that a later read can verify them. Without
        // `--verify` the pattern is not computed.
        if self.arguments.verify {
            self.pattern(block).fill(block.offset, &mut buffer);
        }
        let started = Instant::now();
        let (result, buffer) = self.session_files.files[block.file]
            .write_at(buffer, block.offset)
            .await;
        let elapsed = started.elapsed();
        let count = result?;
        ensure!(count == buffer.len(), "a write accepted only {count} bytes");
        Ok((count as u64, elapsed, buffer))
    }

    fn pattern(&self, block: Block) -> Pattern {
        let file = u32::try_from(block.file).expect("the number of files fits in 32 bits");
        Pattern::of(pattern_number(self.number, file))
    }

    /// In turn: creates a file, queries it, and removes it.
    async fn metadata(&self, slot: usize, round: u64) -> Result<Duration> {
        let share = &self.session_files.share;
        let name = format!("{}/meta-{}-{slot}", self.directory, self.number);
        let started = Instant::now();
        match round % 3 {
            0 => {
                let options = OpenOptions::new().write(true).create_new(true);
                share.open(&name, &options).await?.close().await?;
            }
            1 => drop(share.metadata(&name).await?),
            _ => share.remove_file(&name).await?,
        }
        Ok(started.elapsed())
    }

    async fn echo(&self) -> Result<Duration> {
        let started = Instant::now();
        self.session_files.share.session().echo().await?;
        Ok(started.elapsed())
    }

    async fn login(&self) -> Result<Duration> {
        let started = Instant::now();
        let share = self.factory.share().await?;
        share.session().close().await?;
        Ok(started.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_counted_by_transport() {
        let names = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(counted(&names(&["tcp"])), "tcp");
        assert_eq!(
            counted(&names(&["tcp", "quic", "quic"])),
            "tcp and 2 x quic"
        );
    }
}
