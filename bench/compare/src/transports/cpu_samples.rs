//! Samples of the CPU time of a server while a client runs.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::accounting;

/// Interval between two samples.
const PERIOD: Duration = Duration::from_millis(20);
/// Time limit for a client beyond its duration.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);

/// CPU seconds of a server at several times.
pub(super) struct CpuSamples {
    samples: Vec<(Instant, f64)>,
}

impl CpuSamples {
    /// Samples the process `server` until `client` ends, which takes about `seconds`.
    pub(super) fn during(client: &mut Child, server: u32, seconds: f64) -> Result<CpuSamples> {
        let limit = Instant::now() + Duration::from_secs_f64(seconds) + SILENCE_LIMIT;
        let mut samples = Vec::new();
        loop {
            let cpu = accounting::cpu_of(server).context("the server has ended")?;
            samples.push((Instant::now(), cpu));
            if client.try_wait()?.is_some() {
                return Ok(CpuSamples { samples });
            }
            if Instant::now() > limit {
                client.kill()?;
                client.wait()?;
                bail!("the client does not end");
            }
            thread::sleep(PERIOD);
        }
    }

    /// CPU seconds of the server in the last `seconds`.
    pub(super) fn last(&self, seconds: f64) -> f64 {
        let Some((end, total)) = self.samples.last() else {
            return 0.0;
        };
        let from = Duration::from_secs_f64(seconds);
        let mut earlier = self.samples.iter().rev();
        let start = earlier.find(|(time, _)| end.duration_since(*time) >= from);
        total - start.map_or(0.0, |(_, cpu)| *cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_seconds_count() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let samples = vec![(at(0), 1.0), (at(1), 1.5), (at(2), 2.5), (at(3), 4.0)];
        let samples = CpuSamples { samples };
        assert_eq!(samples.last(1.0), 1.5);
        assert_eq!(samples.last(2.0), 2.5);
    }
}
