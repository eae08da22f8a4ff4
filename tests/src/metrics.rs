//! The metrics of a server under test.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};

use crate::http;

/// Limit of further scrapes while a worker does not report.
const REPEATS: usize = 10;

/// The samples of one scrape: a name with its labels, and the value.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// The text of the server.
    pub text: String,
    samples: BTreeMap<String, f64>,
}

impl Metrics {
    /// Scrapes a server, again while a worker does not report in time, as on a busy machine.
    ///
    /// # Errors
    /// The server does not answer, or its answer is not OpenMetrics text.
    pub fn scrape(server: SocketAddr) -> Result<Metrics> {
        let mut scraped = Metrics::scrape_once(server)?;
        for _ in 0..REPEATS {
            if scraped.sum("smbeam_silent_workers", &[]) == 0.0 {
                break;
            }
            scraped = Metrics::scrape_once(server)?;
        }
        Ok(scraped)
    }

    fn scrape_once(server: SocketAddr) -> Result<Metrics> {
        let answer = http::get(server, "/metrics", "")?;
        ensure!(answer.status == 200, "{answer}");
        let content_type = "content-type: application/openmetrics-text; version=1.0.0";
        ensure!(answer.head.contains(content_type), "{answer}");
        let text = answer.body;
        ensure!(text.ends_with("\n# EOF\n"), "{text}");
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let samples = samples.map(|line| {
            let (name, value) = line.rsplit_once(' ').context("a value")?;
            Ok((name.to_owned(), value.parse()?))
        });
        let samples = samples.collect::<Result<BTreeMap<_, _>>>()?;
        Ok(Metrics { text, samples })
    }

    /// The sum of the samples with this name and all of these labels, as `command="READ"`; 0
    /// without such a sample.
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let of_name = self.samples.iter().filter(|(sample, _)| {
            let (found, rest) = sample.split_once('{').unwrap_or((sample, ""));
            found == name && labels.iter().all(|label| rest.contains(label))
        });
        of_name.map(|(_, value)| value).sum()
    }

    /// The difference of [`sum`](Self::sum) to an earlier scrape.
    pub fn since(&self, before: &Metrics, name: &str, labels: &[&str]) -> f64 {
        self.sum(name, labels) - before.sum(name, labels)
    }
}
