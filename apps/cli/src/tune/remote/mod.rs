//! Measures a server from a client: round trip, latency, a sweep of depths on one channel, and
//! several channels.

mod model;

use std::time::Instant;

use smbeam_client::{Channels, SessionInfo, Wait as _};
use smbeam_server::tune::{KernelFacts, Limit, gather, measure_crypto, mount_options};
use wire::dialect::Capabilities;

use self::model::{Fit, Measured, Point};
use super::arguments::Arguments;
use super::print;
use crate::bench::{self, SessionFactory, Setting, TestFiles};
use crate::client_failure::failure_of;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::location::Url;
use crate::output::{self, Lines};

/// Requests in flight that the advice starts from, if `--depth` is not given.
const DEPTH: usize = 16;
/// Deepest window of the sweep, apart from that of `--depth`.
const DEPTH_MAX: usize = 32;
/// Most channels of the sweep, if `--channels` does not give a number.
const CHANNELS_MAX: usize = 4;
/// Bytes of the file that is read.
const FILE_BYTES: u64 = 64 << 20;
/// ECHO requests of which the median is the round trip.
const ECHOES: usize = 32;

/// Measures the server, and prints its limit.
pub(super) fn measure(arguments: &Arguments, url: &Url) -> Outcome {
    let sweep = Sweep::new(arguments, url);
    let measured = sweep.run()?;
    let fit = Fit::of(&measured);
    let limits = fit.limits(&measured);
    match arguments.json {
        true => print_json(&measured, &fit, &limits),
        false => print_text(arguments, &measured, &fit, &limits),
    }
    Ok(())
}

/// The settings of the measurements.
struct Sweep<'a> {
    arguments: &'a Arguments,
    url: &'a Url,
    bench: bench::Arguments,
    io_size: u32,
    depth: usize,
    /// The number of `--channels`; `None` for `auto` and for a list of transports.
    channels: Option<usize>,
}

impl<'a> Sweep<'a> {
    fn new(arguments: &'a Arguments, url: &'a Url) -> Self {
        let connect = &arguments.connect;
        Self {
            arguments,
            url,
            bench: bench::Arguments::reading(connect, FILE_BYTES, arguments.time),
            io_size: connect.io_size.unwrap_or(smbeam_client::REQUEST_BYTES),
            depth: connect.depth.map_or(DEPTH, |depth| depth as usize),
            channels: match connect.channels {
                Channels::Exactly(count) => Some(count),
                Channels::Auto | Channels::Over(_) => None,
            },
        }
    }

    fn run(&self) -> Outcome<Measured> {
        let (mut measured, info) = self.one_channel()?;
        let may_have_more = info.capabilities.contains(Capabilities::MULTI_CHANNEL);
        let most = self.channels.unwrap_or(CHANNELS_MAX);
        if may_have_more && most > 1 {
            for channels in powers(2, most) {
                let point = self.several_channels(channels)?;
                // The server may accept fewer channels.
                if point.channels > 1 {
                    measured.points.push(point);
                }
            }
        }
        Ok(measured)
    }

    /// Round trip, and the depths on one channel.
    fn one_channel(&self) -> Outcome<(Measured, SessionInfo)> {
        let (factory, files) = self.set_up(1)?;
        let round_trip = self.round_trip(&files)?;
        let mut points = Vec::new();
        for depth in depths(self.depth) {
            points.push(self.point(&factory, &files, 1, depth)?);
        }
        let info = files.session().info();
        let machine = gather(None, None, false);
        let algorithm = match (info.is_encrypted, info.is_signed, info.cipher) {
            (true, _, Some(cipher)) => Some(cipher.name()),
            (false, true, _) => Some(info.signing_algorithm.name()),
            _ => None,
        };
        let speed = |name: &str| {
            let mut speeds = measure_crypto().into_iter();
            speeds.find(|speed| speed.algorithm == name)
        };
        let KernelFacts { cpus, .. } = machine.kernel;
        let is_local = info.channels.iter().any(|channel| channel.is_local);
        let speeds = machine.interfaces.iter().filter_map(|it| it.speed_mbit);
        let measured = Measured {
            round_trip,
            io_size: self.io_size.into(),
            depth: self.depth,
            channels: self.channels.unwrap_or(1),
            credits: info.channels.iter().map(|channel| channel.credits).min(),
            cpus,
            link_bits: speeds
                .max()
                .filter(|_| !is_local)
                .map(|mbit| mbit * 1_000_000),
            crypto: algorithm.and_then(speed),
            points,
        };
        Ok((measured, info))
    }

    fn several_channels(&self, channels: usize) -> Outcome<Point> {
        let (factory, files) = self.set_up(channels)?;
        self.point(&factory, &files, channels, self.depth)
    }

    fn set_up(&self, channels: usize) -> Outcome<(SessionFactory, TestFiles)> {
        let setting = self.setting(channels, self.depth);
        let connect = &self.arguments.connect;
        let factory = SessionFactory::new(connect, self.url, setting.channels.clone())?;
        let files = TestFiles::set_up(&self.bench, &setting, &factory);
        let files = files.map_err(|error| self.failed(&error))?;
        files
            .warm_up(self.io_size)
            .map_err(|error| self.failed(&error))?;
        Ok((factory, files))
    }

    fn setting(&self, channels: usize, depth: usize) -> Setting {
        Setting {
            io_size: self.io_size,
            depth,
            channels: Channels::Exactly(channels),
        }
    }

    /// Median time of an ECHO in seconds.
    fn round_trip(&self, files: &TestFiles) -> Outcome<f64> {
        let mut times = Vec::with_capacity(ECHOES);
        for _ in 0..ECHOES {
            let start = Instant::now();
            let answered = files.session().echo().wait();
            answered.map_err(|error| failure_of(self.url, &error))?;
            times.push(start.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        Ok(times[ECHOES / 2])
    }

    fn point(
        &self,
        factory: &SessionFactory,
        files: &TestFiles,
        channels: usize,
        depth: usize,
    ) -> Outcome<Point> {
        let setting = self.setting(channels, depth);
        let report = bench::measure(&self.bench, &setting, factory, files);
        let report = report.map_err(|error| self.failed(&error))?;
        Ok(Point {
            channels: report.channels,
            depth,
            rate: report.bytes as f64 / report.seconds,
            latency: report.latency_us.p50 / 1e6,
            client_cpus: report.client_cpu / report.seconds,
            server_cpus: report.server_cpu.map(|seconds| seconds / report.seconds),
        })
    }

    fn failed(&self, error: &anyhow::Error) -> Failure {
        match error.downcast_ref::<smbeam_client::Error>() {
            Some(error) => failure_of(self.url, error),
            None => Failure::new(Exit::Failed, self.url, format!("{error:#}")),
        }
    }
}

/// The depths of the sweep: powers of two, and the depth of the user.
fn depths(wanted: usize) -> Vec<usize> {
    let mut depths = powers(1, DEPTH_MAX.max(wanted));
    depths.push(wanted);
    depths.sort_unstable();
    depths.dedup();
    depths
}

/// The powers of two from `first` to `last`.
fn powers(first: usize, last: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(first), |power: &usize| power.checked_mul(2));
    doubled.take_while(|power| *power <= last).collect()
}

fn print_json(measured: &Measured, fit: &Fit, limits: &[Limit]) {
    let mut object = print::limits_json(limits);
    object["measured"] = serde_json::json!(measured);
    object["model"] = serde_json::json!(fit);
    output::line(&object);
}

fn print_text(arguments: &Arguments, measured: &Measured, fit: &Fit, limits: &[Limit]) {
    let mut lines = Lines::new();
    lines.line(&format_args!(
        "round trip     {:.3} ms (ECHO)",
        measured.round_trip * 1e3
    ));
    if let Some(credits) = measured.credits {
        lines.line(&format_args!("credits        {credits} of each channel"));
    }
    for point in &measured.points {
        lines.line(&point.text());
    }
    lines.line(&fit.text(measured));
    lines.line(&print::limits_line(limits));
    let options = mount_options(arguments.profile.into(), measured.cpus, measured.link_bits);
    let options = options
        .into_iter()
        .map(|(name, value)| match value.as_str() {
            "" => name.to_owned(),
            _ => format!("{name}={value}"),
        });
    let options = options.collect::<Vec<_>>().join(",");
    lines.line(&format_args!("mount options of cifs.ko: {options}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_has_the_depth_of_the_user() {
        assert_eq!(depths(16), [1, 2, 4, 8, 16, 32]);
        assert_eq!(depths(6), [1, 2, 4, 6, 8, 16, 32]);
        assert_eq!(depths(100), [1, 2, 4, 8, 16, 32, 64, 100]);
        assert_eq!(powers(2, 4), [2, 4]);
    }
}
