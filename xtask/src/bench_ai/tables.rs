//! The tables: speeds, and CPU time for each 10^9 bytes.

use std::collections::BTreeMap;

use super::options::Table;
use super::record::{Figures, Record};
use super::workload::Workload;
use crate::table;

/// A cell without a measurement.
const EMPTY: &str = "-";

/// Both tables of the host and of the guest, if they have rows.
pub(crate) fn render(records: &[Record]) -> String {
    let mut text = String::new();
    for place in [Table::Host, Table::Guest] {
        let rows = rows(records, place);
        if rows.is_empty() {
            continue;
        }
        let quick = rows.values().flatten().any(|record| record.is_quick);
        let note = if quick { ", small files" } else { "" };
        text.push_str(&format!("\n{}{note}\n", place.name()));
        text.push_str(&speeds(&rows));
        text.push_str("\nCPU seconds for each 10^9 bytes, server + other\n");
        text.push_str(&cpu(&rows));
    }
    for record in records {
        if let Some(reason) = &record.failure {
            let (place, workload) = (record.table.name(), record.workload.name());
            text.push_str(&format!(
                "{place} {workload} {}: {reason}\n",
                record.label()
            ));
        }
    }
    text
}

/// The records of each row, by its number.
fn rows(records: &[Record], place: Table) -> BTreeMap<usize, Vec<&Record>> {
    let mut rows: BTreeMap<usize, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.table == place) {
        rows.entry(record.row).or_default().push(record);
    }
    rows
}

fn speeds(rows: &BTreeMap<usize, Vec<&Record>>) -> String {
    let head = [
        "reader",
        "server",
        "unet3d h100",
        "GB/s",
        "retinanet b200",
        "files/s",
        "checkpoint",
    ];
    let row = |records: &Vec<&Record>| {
        let unet3d = figures(records, Workload::Unet3d);
        let retinanet = figures(records, Workload::Retinanet);
        let checkpoint = figures(records, Workload::Checkpoint);
        let mut cells = name(records);
        cells.push(cell(unet3d, utilization));
        cells.push(cell(unet3d, |figures| format!("{:.2}", figures.read_gb)));
        cells.push(cell(retinanet, utilization));
        cells.push(cell(retinanet, |figures| {
            figures
                .samples
                .map_or_else(|| EMPTY.into(), |samples| format!("{samples:.0}"))
        }));
        cells.push(cell(checkpoint, |figures| {
            let write = figures.write_gb.unwrap_or_default();
            format!("W {write:.2} / R {:.2}", figures.read_gb)
        }));
        cells
    };
    let rows: Vec<Vec<String>> = rows.values().map(row).collect();
    table::render(&head, &rows)
}

fn cpu(rows: &BTreeMap<usize, Vec<&Record>>) -> String {
    let head = ["reader", "server", "unet3d", "retinanet", "checkpoint"];
    let row = |records: &Vec<&Record>| {
        let mut cells = name(records);
        for workload in Workload::ALL {
            cells.push(cell(figures(records, workload), per_gb));
        }
        cells
    };
    let rows: Vec<Vec<String>> = rows.values().map(row).collect();
    table::render(&head, &rows)
}

/// The first two cells of a row.
fn name(records: &[&Record]) -> Vec<String> {
    let first = records.first();
    let of = |cell: fn(&Record) -> String| first.map_or_else(String::new, |record| cell(record));
    vec![
        of(|record| record.reader.clone()),
        of(Record::server_with_workers),
    ]
}

fn figures<'a>(records: &[&'a Record], workload: Workload) -> Option<Option<&'a Figures>> {
    let record = records.iter().find(|record| record.workload == workload)?;
    Some(record.figures.as_ref())
}

/// A cell: empty if nothing was measured.
fn cell(measured: Option<Option<&Figures>>, show: impl Fn(&Figures) -> String) -> String {
    match measured {
        None => EMPTY.into(),
        Some(None) => "failed".into(),
        Some(Some(figures)) => show(figures),
    }
}

/// `N@AU%`; in brackets if the target was missed, with `+` if there were no files for more.
fn utilization(figures: &Figures) -> String {
    let (Some(accelerators), Some(au)) = (figures.accelerators, figures.au_percent) else {
        return EMPTY.into();
    };
    let text = format!("{accelerators}@{au:.0}%");
    match (figures.has_passed, figures.is_limited_by_files) {
        (false, _) => format!("({text})"),
        (true, true) => format!("{text}+"),
        (true, false) => text,
    }
}

fn per_gb(figures: &Figures) -> String {
    let Figures {
        gb,
        server_s,
        others_s,
        ..
    } = figures;
    match *gb > 0.0 {
        true => format!("{:.2} + {:.2}", server_s / gb, others_s / gb),
        false => EMPTY.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Figures, Record, Table, Workload, render, utilization};
    use crate::bench_ai::reader::Reader;
    use crate::bench_ai::service::Service;

    fn figures() -> Figures {
        Figures {
            accelerators: Some(1),
            au_percent: Some(96.6),
            has_passed: true,
            read_gb: 3.0,
            gb: 10.0,
            server_s: 2.0,
            others_s: 3.0,
            ..Figures::default()
        }
    }

    #[test]
    fn a_missed_target_is_in_brackets() {
        let mut figures = figures();
        assert_eq!(utilization(&figures), "1@97%");
        figures.is_limited_by_files = true;
        assert_eq!(utilization(&figures), "1@97%+");
        figures.has_passed = false;
        assert_eq!(utilization(&figures), "(1@97%)");
    }

    #[test]
    fn a_row_has_all_workloads_of_a_reader() {
        let of = |workload| Record {
            figures: Some(figures()),
            ..Record::new(Table::Host, workload, 1, (Service::Smbeam(2), Reader::Url))
        };
        let failed = Record {
            failure: Some("no mount".into()),
            ..Record::new(
                Table::Host,
                Workload::Checkpoint,
                1,
                (Service::Smbeam(2), Reader::Url),
            )
        };
        let text = render(&[of(Workload::Unet3d), failed]);
        let row = text
            .lines()
            .find(|line| line.starts_with("smb-url"))
            .expect("a row");
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(
            cells,
            [
                "smb-url", "smbeam", "2", "1@97%", "3.00", "-", "-", "failed"
            ]
        );
        assert!(text.contains("0.20 + 0.30"), "{text}");
        assert!(
            text.contains("host checkpoint smbeam 2: smb-url: no mount"),
            "{text}"
        );
    }
}
