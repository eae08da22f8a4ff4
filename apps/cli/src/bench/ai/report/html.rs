//! The page with charts. It has no script and needs no other file.

use std::fmt::Write as _;

use anyhow::Result;

use super::super::result::{BenchResult, Distribution};
use super::charts::{Axis, Group, Line, Texts, bars, lines};
use super::columns::{Columns, best, cpu_of};
use super::{details, storage_line};

/// The style of the page.
const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1340px;\
    padding:0 1em;color:#1d1d1f}h1{font-size:1.6em}h2{font-size:1.2em;margin-top:1.8em}\
    table{border-collapse:collapse}th,td{border:1px solid #ccc;padding:.3em .7em;text-align:left;\
    white-space:pre}th{background:#f3f4f6}figure{display:inline-block;margin:0 1em 1em 0;\
    border:1px solid #e2e2e2}svg{display:block;max-width:100%;height:auto}\
    pre{background:#f6f7f8;padding:.8em;overflow-x:auto}";

/// Makes the page of these results.
///
/// # Errors
/// A chart cannot be drawn.
pub(super) fn page(results: &[BenchResult]) -> Result<String> {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>smbeam bench ai</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Storage for AI training</h1>\n"
    );
    append_summary(&mut page, results);
    append_charts(&mut page, results)?;
    append_details(&mut page, results);
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

fn append_summary(page: &mut String, results: &[BenchResult]) {
    let columns = Columns::of(results);
    page.push_str("<h2>Results</h2>\n<table>\n<tr><th></th>");
    // Writing to a string cannot fail.
    for label in columns.labels() {
        let _ = write!(page, "<th>{}</th>", escaped(&label));
    }
    page.push_str("</tr>\n");
    for (name, cells) in columns.rows() {
        let _ = write!(page, "<tr><th>{}</th>", escaped(&name));
        for cell in cells {
            let _ = write!(page, "<td>{}</td>", escaped(&cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str(
        "</table>\n<p>N@AU%: accelerators and their utilization. W / R: checkpoints written and \
         read. GBps: 10<sup>9</sup> bytes per second. cpu%@cores: busy processors of the host of \
         the benchmark.</p>\n",
    );
}

fn append_charts(page: &mut String, results: &[BenchResult]) -> Result<()> {
    page.push_str("<h2>Charts</h2>\n");
    let mut names: Vec<String> = Vec::new();
    for name in results.iter().filter_map(workload) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in &names {
        let of_workload: Vec<&BenchResult> = results
            .iter()
            .filter(|result| workload(result).as_ref() == Some(name))
            .collect();
        append_training(page, name, &of_workload)?;
    }
    let checkpoints: Vec<&BenchResult> = results
        .iter()
        .filter(|result| result.checkpoint.is_some())
        .collect();
    if !checkpoints.is_empty() {
        append_checkpoints(page, &checkpoints)?;
    }
    let series = ["client", "server"].map(str::to_owned);
    let groups = results.iter().map(cpu_group).collect::<Vec<_>>();
    let texts = Texts {
        title: "CPU time per GB",
        x: "",
        y: "seconds per 10^9 bytes",
    };
    append_figure(page, &bars(texts, &series, &groups)?);
    Ok(())
}

/// Model and accelerator of a training.
fn workload(result: &BenchResult) -> Option<String> {
    let it = &result.train.as_ref()?.configuration;
    Some(format!("{} {}", it.workload.name(), it.accelerator.name()))
}

fn append_training(page: &mut String, name: &str, results: &[&BenchResult]) -> Result<()> {
    let counts = results.iter().map(|result| {
        let train = result.train.as_ref();
        let passed = train.and_then(best).filter(|run| run.has_passed);
        Group {
            name: result.label.clone(),
            values: vec![Some(passed.map_or(0.0, |run| run.accelerators as f64))],
        }
    });
    let target = results[0]
        .train
        .as_ref()
        .map(|it| it.configuration.au_target_percent);
    let title = format!("{name}: accelerators at AU {:.0} %", target.unwrap_or(0.0));
    let texts = Texts {
        title: &title,
        x: "",
        y: "accelerators",
    };
    let counts: Vec<Group> = counts.collect();
    append_figure(page, &bars(texts, &["accelerators".to_owned()], &counts)?);

    let by_accelerators = |value: fn(&super::super::result::TrainRun) -> Option<f64>| {
        let lines = results.iter().map(|result| {
            let runs = result.train.iter().flat_map(|train| &train.runs);
            let points = runs.filter_map(|run| Some((run.accelerators as f64, value(run)?)));
            let mut points: Vec<(f64, f64)> = points.collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Line {
                name: result.label.clone(),
                points,
            }
        });
        lines.collect::<Vec<Line>>()
    };
    let title = format!("{name}: throughput");
    let texts = Texts {
        title: &title,
        x: "accelerators",
        y: "GBps",
    };
    let throughput = by_accelerators(|run| Some(run.gb_per_second));
    append_figure(page, &lines(texts, &throughput, Axis::Linear, None)?);
    let title = format!("{name}: utilization");
    let texts = Texts {
        title: &title,
        x: "accelerators",
        y: "AU in percent",
    };
    let utilization = by_accelerators(|run| run.au_percent);
    append_figure(page, &lines(texts, &utilization, Axis::Linear, target)?);
    let times = results.iter().filter_map(|result| {
        let run = result.train.as_ref().and_then(best)?;
        Some((result.label.clone(), &run.batch_read))
    });
    append_latency(page, &format!("{name}: time to read a batch"), times)
}

/// A chart of the shares of operations by their time.
fn append_latency<'a>(
    page: &mut String,
    title: &str,
    times: impl Iterator<Item = (String, &'a Distribution)>,
) -> Result<()> {
    let curves = times.map(|(name, distribution)| {
        let points = distribution.by_percent_us.iter().zip(1..);
        let points = points.map(|(us, percent)| (us / 1e3, f64::from(percent)));
        Line {
            name,
            points: points.collect(),
        }
    });
    let texts = Texts {
        title,
        x: "milliseconds",
        y: "percent of operations",
    };
    let curves: Vec<Line> = curves.collect();
    append_figure(page, &lines(texts, &curves, Axis::Logarithmic, None)?);
    Ok(())
}

fn append_checkpoints(page: &mut String, results: &[&BenchResult]) -> Result<()> {
    let groups = results.iter().map(|result| {
        let it = result.checkpoint.as_ref();
        let rate = |phase: Option<&super::super::result::CheckpointPhase>| {
            phase.map(|phase| phase.gb_per_second)
        };
        let name = it.map_or_else(String::new, |it| it.model.name().to_owned());
        Group {
            name: format!("{} {name}", result.label),
            values: vec![
                rate(it.and_then(|it| it.write.as_ref())),
                rate(it.and_then(|it| it.read.as_ref())),
            ],
        }
    });
    let texts = Texts {
        title: "Checkpoints",
        x: "",
        y: "GBps",
    };
    let series = ["write", "read"].map(str::to_owned);
    let groups: Vec<Group> = groups.collect();
    append_figure(page, &bars(texts, &series, &groups)?);
    let times = results.iter().flat_map(|result| {
        let it = result.checkpoint.as_ref();
        let phases = it.map(|it| [("write", &it.write), ("read", &it.read)]);
        let phases = phases.into_iter().flatten();
        phases.filter_map(|(verb, phase)| {
            let phase = phase.as_ref()?;
            Some((format!("{} {verb}", result.label), &phase.file_time))
        })
    });
    append_latency(page, "Checkpoints: time of a file", times)
}

fn cpu_group(result: &BenchResult) -> Group {
    let uses = cpu_of(result);
    let bytes: u64 = uses.iter().map(|(_, bytes)| bytes).sum();
    let client: f64 = uses.iter().map(|(cpu, _)| cpu.client_s).sum();
    let server: Option<f64> = uses.iter().map(|(cpu, _)| cpu.server_s).sum();
    let per_gb = |seconds: f64| seconds / (bytes.max(1) as f64 / 1e9);
    let what = match &result.checkpoint {
        Some(it) => it.model.name().to_owned(),
        None => workload(result).unwrap_or_default(),
    };
    Group {
        name: format!("{} {what}", result.label),
        values: vec![Some(per_gb(client)), server.map(per_gb)],
    }
}

fn append_figure(page: &mut String, svg: &str) {
    let _ = writeln!(page, "<figure>{svg}</figure>");
}

fn append_details(page: &mut String, results: &[BenchResult]) {
    page.push_str("<h2>Runs</h2>\n");
    for result in results {
        let host = &result.host;
        let json = serde_json::to_string_pretty(result).unwrap_or_default();
        let mount = result.storage.mount.as_ref();
        let options = mount.map_or(String::new(), |mount| {
            format!("mount options {}", mount.options)
        });
        let _ = writeln!(
            page,
            "<h3>{}</h3>\n<p>{}<br>{}</p>\n<p>{}, {} cores {}, {:.0} GiB memory, kernel {}, smbeam \
             {}, {}</p>\n<pre>{}</pre>\n<details><summary>JSON</summary><pre>{}</pre></details>",
            escaped(&result.label),
            escaped(&storage_line(result)),
            escaped(&options),
            escaped(&host.name),
            host.cores,
            escaped(&host.cpu),
            host.memory_bytes as f64 / (1_u64 << 30) as f64,
            escaped(&host.kernel),
            escaped(&result.smbeam),
            escaped(&result.started),
            escaped(&details(result)),
            escaped(&json)
        );
    }
}

/// Text for HTML.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::super::result::examples;
    use super::*;

    #[test]
    fn a_page_has_tables_charts_and_the_results() {
        let other = BenchResult {
            label: "<nfs4>".into(),
            ..examples::train()
        };
        let results = [examples::train(), examples::checkpoint(), other];
        let page = page(&results).expect("drawn");
        // Training: four charts. Checkpoints: two. CPU: one.
        assert_eq!(page.matches("<svg").count(), 7);
        for text in ["2@93%", "W 1.5 GBps / R 2.5 GBps", "&lt;nfs4&gt;", "46%@2"] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("<nfs4>") && !page.contains("<script"));
        assert!(!page.contains("src=") && !page.contains("href="));
    }
}
