//! Charts as SVG texts.

use anyhow::{Result, anyhow};
use plotters::coord::CoordTranslate;
use plotters::prelude::*;

/// Width and height of a chart in pixels.
const SIZE: (u32, u32) = (640, 360);
/// Most labels of the horizontal axis.
const X_LABELS: usize = 12;
/// Most groups of bars with names beside each other. With more groups the names are vertical.
const FLAT_NAMES: usize = 4;
/// Height below the horizontal axis in pixels: for names beside each other, and for vertical ones.
const LABEL_HEIGHT: (u32, u32) = (38, 130);
/// Height of the axis relative to the highest value.
const HEAD_ROOM: f64 = 1.12;
/// Width of the bars of a group relative to the distance of groups.
const BAR_WIDTH: f64 = 0.8;

/// A line of a chart.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// The texts of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Texts<'a> {
    pub(super) title: &'a str,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
}

/// The horizontal axis of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// From 0 on.
    Linear,
    /// From the smallest value on, in powers of ten.
    Logarithmic,
}

/// Draws lines. `level` is a horizontal line, such as a target.
///
/// # Errors
/// The chart cannot be drawn.
pub(super) fn lines(
    texts: Texts<'_>,
    lines: &[Line],
    axis: Axis,
    level: Option<f64>,
) -> Result<String> {
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let highest = points()
        .map(|point| point.1)
        .chain(level)
        .fold(0.0, f64::max);
    let furthest = points().map(|point| point.0).fold(0.0, f64::max).max(1e-9);
    let nearest = points()
        .map(|point| point.0)
        .filter(|x| *x > 0.0)
        .fold(furthest, f64::min);
    let y = 0.0..highest.max(1e-9) * HEAD_ROOM;
    let mut svg = String::new();
    match axis {
        Axis::Linear => {
            let x = 0.0..furthest.ceil() + 1.0;
            drawn(draw_lines(
                &mut svg,
                texts,
                (x.clone(), y),
                (lines, level, x),
            ))?;
        }
        Axis::Logarithmic => {
            let x = nearest..(furthest * 1.1).max(nearest * 10.0);
            let scale = x.clone().log_scale();
            drawn(draw_lines(&mut svg, texts, (scale, y), (lines, level, x)))?;
        }
    }
    Ok(svg)
}

fn drawn(result: Result<(), DrawError>) -> Result<()> {
    result.map_err(|error| anyhow!("a chart: {error}"))
}

/// The error of a drawing into a text.
type DrawError = DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>;

fn draw_lines<X>(
    svg: &mut String,
    texts: Texts<'_>,
    (x, y): (X, std::ops::Range<f64>),
    (lines, level, width): (&[Line], Option<f64>, std::ops::Range<f64>),
) -> Result<(), DrawError>
where
    X: plotters::coord::ranged1d::AsRangedCoord<Value = f64>,
    X::CoordDescType: plotters::coord::ranged1d::ValueFormatter<f64>,
{
    // Labels at whole numbers: not more than there are.
    let labels = (width.end.ceil() as usize + 1).clamp(2, X_LABELS);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .caption(texts.title, ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(38)
        .y_label_area_size(58)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_desc(texts.x)
        .y_desc(texts.y)
        .x_labels(labels)
        .x_label_formatter(&|x| x_label(*x))
        .light_line_style(TRANSPARENT)
        .draw()?;
    if let Some(level) = level {
        let ends = [(width.start, level), (width.end, level)];
        chart.draw_series(LineSeries::new(ends, BLACK.mix(0.4)))?;
    }
    for (index, line) in lines.iter().enumerate() {
        let style = Palette99::pick(index).to_rgba().stroke_width(2);
        let size = if line.points.len() > 40 { 0 } else { 4 };
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style).point_size(size))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    if !lines.is_empty() {
        // The points end before the right side, and distributions rise to the upper right.
        draw_legend(&mut chart, SeriesLabelPosition::LowerRight)?;
    }
    drop(chart);
    area.present()
}

fn draw_legend<'a, C: CoordTranslate>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, C>,
    position: SeriesLabelPosition,
) -> Result<(), DrawError> {
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .position(position)
        .draw()
}

/// The label of a value of the horizontal axis.
fn x_label(x: f64) -> String {
    match x > 0.0 && x < 1.0 {
        true => format!("{x}"),
        false => format!("{x:.0}"),
    }
}

/// Bars with the values of several series for one group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) values: Vec<Option<f64>>,
}

/// Draws groups of bars. `series` has the names of the bars of a group.
///
/// # Errors
/// The chart cannot be drawn.
pub(super) fn bars(texts: Texts<'_>, series: &[String], groups: &[Group]) -> Result<String> {
    let mut svg = String::new();
    drawn(draw_bars(&mut svg, texts, series, groups))?;
    Ok(svg)
}

fn draw_bars(
    svg: &mut String,
    texts: Texts<'_>,
    series: &[String],
    groups: &[Group],
) -> Result<(), DrawError> {
    let values = groups
        .iter()
        .flat_map(|group| group.values.iter().flatten());
    let highest = match values.copied().fold(0.0, f64::max) {
        0.0 => 1.0,
        highest => highest,
    };
    let (label_height, name_style) = names_below(groups.len());
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .caption(texts.title, ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(label_height)
        .y_label_area_size(58)
        .build_cartesian_2d(0.0..groups.len().max(1) as f64, 0.0..highest * HEAD_ROOM)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .x_desc(texts.x)
        .y_desc(texts.y)
        .light_line_style(TRANSPARENT)
        .draw()?;
    let width = BAR_WIDTH / series.len().max(1) as f64;
    for (index, name) in series.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let bars = groups.iter().enumerate().filter_map(|(number, group)| {
            let value = group.values.get(index).copied().flatten()?;
            let left = number as f64 + (1.0 - BAR_WIDTH) / 2.0 + index as f64 * width;
            let corners = [(left, 0.0), (left + width * 0.92, value)];
            Some(Rectangle::new(corners, color.filled()))
        });
        chart
            .draw_series(bars)?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
        let numbers = groups.iter().enumerate().filter_map(|(number, group)| {
            let value = group.values.get(index).copied().flatten()?;
            let left = number as f64 + (1.0 - BAR_WIDTH) / 2.0 + index as f64 * width;
            let shown = shown(value);
            Some(Text::new(
                shown,
                (left, value + highest * 0.05),
                ("sans-serif", 12),
            ))
        });
        chart.draw_series(numbers)?;
    }
    let names = groups.iter().enumerate().map(|(number, group)| {
        let (start, shift) = match groups.len() > FLAT_NAMES {
            true => (0.5, 8),
            false => ((1.0 - BAR_WIDTH) / 2.0, 0),
        };
        let name = Text::new(group.name.clone(), (shift, 6), name_style.clone());
        EmptyElement::at((number as f64 + start, 0.0)) + name
    });
    chart.draw_series(names)?;
    if series.len() > 1 {
        draw_legend(&mut chart, SeriesLabelPosition::UpperRight)?;
    }
    drop(chart);
    area.present()
}

/// The height below the axis of bars in pixels, and the style of the names of groups.
fn names_below(groups: usize) -> (u32, TextStyle<'static>) {
    let style = TextStyle::from(("sans-serif", 12));
    match groups > FLAT_NAMES {
        true => (LABEL_HEIGHT.1, style.transform(FontTransform::Rotate90)),
        false => (LABEL_HEIGHT.0, style),
    }
}

/// A value with few digits.
fn shown(value: f64) -> String {
    match value {
        whole if whole.fract() == 0.0 => format!("{whole:.0}"),
        large if large >= 100.0 => format!("{large:.0}"),
        medium if medium >= 1.0 => format!("{medium:.1}"),
        small => format!("{small:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: Texts<'_> = Texts {
        title: "title of <chart>",
        x: "accelerators",
        y: "GBps",
    };

    #[test]
    fn lines_have_names_axes_and_a_level() {
        let line = Line {
            name: "tcp & quic".into(),
            points: vec![(1.0, 2.0), (2.0, 4.0)],
        };
        for axis in [Axis::Linear, Axis::Logarithmic] {
            let svg = lines(TEXTS, std::slice::from_ref(&line), axis, Some(3.0)).expect("drawn");
            assert!(svg.starts_with("<svg") && svg.contains("GBps"), "{svg}");
            assert!(
                svg.contains("tcp &amp; quic") && svg.contains("&lt;chart&gt;"),
                "{svg}"
            );
        }
        assert!(lines(TEXTS, &[], Axis::Logarithmic, None).is_ok());
    }

    #[test]
    fn bars_have_names_and_values() {
        let groups = [Group {
            name: "unet3d".into(),
            values: vec![Some(15.0), None, Some(2.26)],
        }];
        let series = ["tcp", "nfs", "rdma"].map(str::to_owned);
        let svg = bars(TEXTS, &series, &groups).expect("drawn");
        for text in ["unet3d", "15", "2.3", "rdma"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(bars(TEXTS, &[], &[]).is_ok());
        assert!(!svg.contains("rotate(90"));
        let many: Vec<Group> = groups.iter().cycle().take(5).cloned().collect();
        let svg = bars(TEXTS, &series, &many).expect("drawn");
        assert_eq!(svg.matches("rotate(90").count(), 5);
    }
}
