//! One run: every session on a thread of its own, so many operations in flight on each.

use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use futures_util::future::try_join_all;
use smbeam_client::{OpenOptions, Region, SessionInfo, Wait as _};

use super::Setting;
use super::cpu;
use super::dial::Dial;
use super::options::{Arguments, Workload};
use super::pattern::Pattern;
use super::places::{Place, Places};
use super::record::{Progress, Record};
use super::report::{Latency, Report};
use super::stage::{Seat, Stage, drop_caches, pattern_number};
use crate::output::note_text;

/// How often the line that shows the progress is written anew.
const LIVE: Duration = Duration::from_secs(1);
/// How often a finished run is looked for meanwhile.
const TICK: Duration = Duration::from_millis(50);

/// Sets the stage, runs, and takes the stage down.
pub(crate) fn run(arguments: &Arguments, setting: &Setting, dial: &Dial) -> Result<Report> {
    let stage = Stage::set_up(arguments, setting, dial)?;
    if arguments.cold {
        drop_caches()?;
    } else if arguments.workload != Workload::Write {
        stage.warm_up(setting.io_size)?;
    }
    // smbd has a process for each connection: those that come and go cannot be counted so.
    let server = match arguments.workload {
        Workload::Connect => None,
        _ => cpu::Server::of(&stage.ends(), &dial.rdma),
    };
    let server_before = server.as_ref().map(cpu::Server::seconds);
    let client_before = cpu::own_seconds();
    let started = Instant::now();
    let record = crowd(arguments, setting, &stage, dial, started)?;
    let seconds = started.elapsed().as_secs_f64();
    let server_cpu = server.zip(server_before);
    let info = stage.session().info();
    Ok(Report {
        workload: arguments.workload.name().to_owned(),
        url: dial.url.to_string(),
        session: session_line(&info),
        is_signed: info.is_signed,
        is_encrypted: info.is_sealed,
        io_size: match arguments.workload.moves_data() {
            true => u64::from(setting.io_size),
            false => 0,
        },
        depth: setting.depth,
        channels: info.channels.len(),
        transports: transports(&info),
        connections: usize::from(arguments.connections),
        working_set: stage.working_set,
        seconds,
        ops: record.ops,
        bytes: record.bytes,
        latency_us: Latency::of(&record),
        client_cpu: cpu::own_seconds() - client_before,
        server_cpu: server_cpu.map(|(server, before)| server.seconds() - before),
    })
}

/// How the server is spoken to.
fn session_line(info: &SessionInfo) -> String {
    let protection = match (info.is_sealed, info.is_signed, info.cipher) {
        (true, _, Some(cipher)) => format!("encrypted with {cipher:?}"),
        (_, true, _) => format!("signed with {:?}", info.signing_algorithm),
        _ => "neither signed nor encrypted".to_owned(),
    };
    format!(
        "{:?}, {protection}, over {}",
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

/// `tcp`, `3 x quic and tcp`.
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

/// All sessions at once, and the line that shows how they do.
fn crowd(
    arguments: &Arguments,
    setting: &Setting,
    stage: &Stage,
    dial: &Dial,
    started: Instant,
) -> Result<Record> {
    let progress = Progress::default();
    let deadline = started + Duration::from_secs_f64(arguments.time);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let show = !arguments.json && !arguments.csv && std::io::stderr().is_terminal();
        if show {
            scope.spawn(|| live(&progress, &is_over));
        }
        let players = stage.seats.iter().enumerate().map(|(number, seat)| Player {
            arguments,
            setting,
            folder: &stage.folder,
            number,
            seat,
            dial,
            progress: &progress,
            deadline,
        });
        let threads: Vec<_> = players
            .map(|player| scope.spawn(move || player.play()))
            .collect();
        let records = threads.into_iter().map(thread::ScopedJoinHandle::join);
        let merged =
            merge(records.map(|joined| joined.map_err(|_| anyhow!("a session's thread died"))?));
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

fn live(progress: &Progress, is_over: &AtomicBool) {
    let mut last = (Instant::now(), progress.so_far());
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(TICK);
        let elapsed = last.0.elapsed();
        if elapsed < LIVE {
            continue;
        }
        let (ops, bytes) = progress.so_far();
        let seconds = elapsed.as_secs_f64();
        let rate = (ops - last.1.0) as f64 / seconds;
        let gb = (bytes - last.1.1) as f64 / 1e9 / seconds;
        note_text(&format!("\r{gb:9.3} GB/s {rate:12.0} ops/s "));
        last = (Instant::now(), (ops, bytes));
    }
    note_text(&format!("\r{:40}\r", ""));
}

/// One session at work.
struct Player<'a> {
    arguments: &'a Arguments,
    setting: &'a Setting,
    folder: &'a str,
    number: usize,
    seat: &'a Seat,
    dial: &'a Dial,
    progress: &'a Progress,
    deadline: Instant,
}

impl Player<'_> {
    fn play(&self) -> Result<Record> {
        let record = RefCell::new(Record::new()?);
        let places = self.places();
        let hands = (0..self.setting.depth).map(|hand| self.hand(hand, &places, &record));
        try_join_all(hands).wait()?;
        Ok(record.into_inner())
    }

    fn places(&self) -> Places {
        let files = self.seat.files.len().max(1) as u64;
        let block = u64::from(self.setting.io_size);
        let places = Places::new(files, self.seat.blocks_per_file, block);
        if self.arguments.random {
            places.shuffled(0x9E37_79B9_7F4A_7C15 ^ self.number as u64)
        } else {
            places
        }
    }

    /// One operation after the other until the time is over.
    async fn hand(&self, hand: usize, places: &Places, record: &RefCell<Record>) -> Result<()> {
        let len = match self.arguments.workload {
            Workload::Write | Workload::Rw => self.setting.io_size as usize,
            _ => 0,
        };
        let mut buffer = Region::of_pages(len)?;
        Pattern::of(hand as u64).fill(0, &mut buffer);
        let mut round = 0;
        while Instant::now() < self.deadline {
            let (moved, elapsed);
            (moved, elapsed, buffer) = self.operate(hand, round, places, buffer).await?;
            round += 1;
            self.progress.add(moved);
            record.borrow_mut().add(moved, elapsed);
        }
        Ok(())
    }

    async fn operate(
        &self,
        hand: usize,
        round: u64,
        places: &Places,
        buffer: Region,
    ) -> Result<(u64, Duration, Region)> {
        let place = if self.arguments.torture {
            Place {
                file: hand,
                offset: 0,
            }
        } else {
            places.next()
        };
        match self.arguments.workload {
            Workload::Read => self.read(place, buffer).await,
            Workload::Rw if places.percent() < self.arguments.reads => {
                self.read(place, buffer).await
            }
            Workload::Write => self.write(place, buffer).await,
            Workload::Rw => self.write(place, buffer).await,
            Workload::Meta => Ok((0, self.metadata(hand, round).await?, buffer)),
            Workload::Echo => Ok((0, self.echo().await?, buffer)),
            Workload::Connect => Ok((0, self.login().await?, buffer)),
        }
    }

    async fn read(&self, place: Place, buffer: Region) -> Result<(u64, Duration, Region)> {
        let len = self.setting.io_size as usize;
        let started = Instant::now();
        let bytes = self.seat.files[place.file].read(len, place.offset).await?;
        let elapsed = started.elapsed();
        let count = bytes.len();
        ensure!(count == len, "a read stopped at {count} bytes");
        if self.arguments.verify {
            self.pattern(place).check(place.offset, &bytes)?;
        }
        Ok((count as u64, elapsed, buffer))
    }

    async fn write(&self, place: Place, mut buffer: Region) -> Result<(u64, Duration, Region)> {
        // What is written is what was there, so that whoever verifies finds it. Nobody else pays
        // for making it.
        if self.arguments.verify {
            self.pattern(place).fill(place.offset, &mut buffer);
        }
        let started = Instant::now();
        let (result, buffer) = self.seat.files[place.file]
            .write_at(buffer, place.offset)
            .await;
        let elapsed = started.elapsed();
        let count = result?;
        ensure!(count == buffer.len(), "a write stopped at {count} bytes");
        Ok((count as u64, elapsed, buffer))
    }

    fn pattern(&self, place: Place) -> Pattern {
        let file = u32::try_from(place.file).expect("files are counted in 32 bits");
        Pattern::of(pattern_number(self.number, file))
    }

    /// In turn: create a file, look at it, remove it.
    async fn metadata(&self, hand: usize, round: u64) -> Result<Duration> {
        let share = &self.seat.share;
        let name = format!("{}/meta-{}-{hand}", self.folder, self.number);
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
        self.seat.share.session().echo().await?;
        Ok(started.elapsed())
    }

    async fn login(&self) -> Result<Duration> {
        let started = Instant::now();
        let share = self.dial.share().await?;
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
