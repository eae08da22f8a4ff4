//! A chart of throughput against depth as an SVG file, with one line per number of channels.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::report::Report;

/// Width and height in pixels.
const SIZE: (u32, u32) = (900, 540);
/// Height of the chart relative to the highest point.
const HEAD_ROOM: f64 = 1.1;

/// Draws the results of `reports` into the file `path`.
pub(crate) fn draw(path: &Path, reports: &[Report]) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| anyhow!("cannot draw {}: {error}", path.display());
    let mut lines: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    for report in reports {
        let point = (report.depth as f64, report.rate());
        lines.entry(report.channels).or_default().push(point);
    }
    let points = || lines.values().flatten();
    let deepest = points().map(|point| point.0).fold(1.0, f64::max);
    let fastest = points()
        .map(|point| point.1)
        .fold(f64::MIN_POSITIVE, f64::max);
    let first = reports
        .first()
        .ok_or_else(|| anyhow!("there is nothing to draw"))?;
    let unit = if first.bytes > 0 {
        "GiB/s"
    } else {
        "operations/s"
    };

    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    let mut chart = ChartBuilder::on(&area)
        .caption(
            format!("{} {}", first.workload, first.url),
            ("sans-serif", 20),
        )
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (1.0..deepest.max(2.0)).log_scale().base(2.0),
            0.0..fastest * HEAD_ROOM,
        )
        .map_err(|error| failed(&error))?;
    chart
        .configure_mesh()
        .x_desc("requests in flight")
        .y_desc(unit)
        .draw()
        .map_err(|error| failed(&error))?;
    for (index, (channels, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let style = color.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style).point_size(4))
            .map_err(|error| failed(&error))?
            .label(format!("{channels} channels"))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .position(SeriesLabelPosition::LowerRight)
        .draw()
        .map_err(|error| failed(&error))?;
    area.present().map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::super::report::example;
    use super::*;

    #[test]
    fn every_number_of_channels_has_a_line() {
        let directory = tempfile::tempdir().expect("given");
        let path = directory.path().join("out.svg");
        let reports: Vec<Report> = [(1, 1), (16, 1), (1, 4), (16, 4)]
            .into_iter()
            .map(|(depth, channels)| Report {
                depth,
                channels,
                ..example()
            })
            .collect();
        draw(&path, &reports).expect("given");
        let text = std::fs::read_to_string(&path).expect("given");
        assert!(text.contains("<svg") && text.contains("GiB/s"));
        assert!(text.contains("1 channels") && text.contains("4 channels"));
        assert!(draw(&path, &[]).is_err());
    }
}
