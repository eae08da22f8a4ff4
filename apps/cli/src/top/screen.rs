//! The screen of `smbeam top`: a head, the traffic of the last minutes, and three tables.

use std::time::{Duration, SystemTime};

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Block, Row, Sparkline, Table};

use super::rates::{ClientRates, CommandRates, Rates, ShareRates};
use crate::format;

/// Most values of the traffic history: one for each column of a wide terminal.
const HISTORY_MAX: usize = 512;
/// Lines of the traffic history, with its title.
const HISTORY_LINES: u16 = 5;
/// Lines of the tables of commands and shares, with titles and heads.
const UPPER_LINES: u16 = 12;

/// The contents of the screen.
#[derive(Debug, Default)]
pub(super) struct Screen {
    pub(super) rates: Rates,
    /// Bytes per second in both directions, the latest last.
    history: Vec<u64>,
    pub(super) order: Order,
    pub(super) is_paused: bool,
    /// The last failure to reach the server.
    pub(super) failure: Option<String>,
}

/// The order of the clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Bytes,
    Requests,
    Errors,
}

impl Order {
    /// The next order.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Bytes => Self::Requests,
            Self::Requests => Self::Errors,
            Self::Errors => Self::Bytes,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Requests => "requests",
            Self::Errors => "errors",
        }
    }

    fn key(self, client: &ClientRates) -> f64 {
        match self {
            Self::Bytes => client.traffic.bytes(),
            Self::Requests => client.traffic.answered,
            Self::Errors => client.traffic.errors,
        }
    }
}

impl Screen {
    /// Takes new rates.
    pub(super) fn update(&mut self, rates: Rates) {
        self.failure = None;
        if self.history.len() >= HISTORY_MAX {
            self.history.remove(0);
        }
        self.history.push(rates.totals.bytes() as u64);
        self.rates = rates;
    }

    /// Draws everything.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let parts = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(HISTORY_LINES),
            Constraint::Length(UPPER_LINES),
            Constraint::Min(3),
            Constraint::Length(1),
        ]);
        let [head, history, upper, clients, foot] = parts.areas(frame.area());
        let halves = Layout::horizontal([Constraint::Percentage(50); 2]).spacing(1);
        let [commands, shares] = halves.areas(upper);
        frame.render_widget(ratatui::text::Text::from(self.head()), head);
        self.draw_history(frame, history);
        frame.render_widget(command_table(&self.rates.commands), commands);
        frame.render_widget(share_table(&self.rates.shares), shares);
        frame.render_widget(self.client_table(), clients);
        frame.render_widget(self.foot(), foot);
    }

    fn head(&self) -> Vec<Line<'static>> {
        let Rates {
            name,
            at_ms,
            since,
            now,
            totals,
            refused,
            ..
        } = &self.rates;
        let up = Duration::from_secs((at_ms / 1000).saturating_sub(*since));
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(*at_ms);
        let first = format!(
            "{}  {}  up {}  {} requests/s  {} errors/s  {} refused/s",
            format::name(name),
            format::local_time(time),
            duration(up),
            number(totals.answered),
            number(totals.errors),
            number(*refused),
        );
        let second = format!(
            "{} sessions  {} connections  {} opens  {} locks  {} leases  {} requests in progress",
            now.sessions,
            self.rates.clients.len(),
            now.opens,
            now.locks,
            now.leases,
            now.requests,
        );
        vec![Line::from(first).bold(), Line::from(second)]
    }

    fn draw_history(&self, frame: &mut Frame<'_>, area: Rect) {
        let shown = usize::from(area.width).min(self.history.len());
        let latest = &self.history[self.history.len() - shown..];
        let highest = latest.iter().copied().max().unwrap_or(0);
        let totals = &self.rates.totals;
        let title = format!(
            "traffic: {} in, {} out, highest {}",
            format::measured_rate(totals.received),
            format::measured_rate(totals.sent),
            format::measured_rate(highest as f64),
        );
        let chart = Sparkline::default()
            .block(Block::new().title(Line::from(title).bold()))
            .data(latest.iter().copied())
            .style(Style::new().cyan());
        frame.render_widget(chart, area);
    }

    fn client_table(&self) -> Table<'static> {
        let mut clients: Vec<&ClientRates> = self.rates.clients.iter().collect();
        clients.sort_by(|one, other| self.order.key(other).total_cmp(&self.order.key(one)));
        let rows = clients.into_iter().map(|client| {
            let traffic = &client.traffic;
            Row::new(vec![
                client.peer.clone(),
                users(client),
                client.transport.clone(),
                format::measured_rate(traffic.received),
                format::measured_rate(traffic.sent),
                number(traffic.answered),
                number(traffic.errors),
                client.requests.to_string(),
            ])
        });
        let widths = [
            Constraint::Min(22),
            Constraint::Min(10),
            Constraint::Length(9),
            Constraint::Length(11),
            Constraint::Length(11),
            Constraint::Length(10),
            Constraint::Length(8),
            Constraint::Length(8),
        ];
        let heads = [
            "CLIENT",
            "USER",
            "TRANSPORT",
            "RECEIVED",
            "SENT",
            "REQUESTS/S",
            "ERRORS/S",
            "PENDING",
        ];
        table("clients", &heads, rows.collect(), widths.to_vec())
    }

    fn foot(&self) -> Line<'static> {
        if let Some(failure) = &self.failure {
            return Line::from(format::name(failure)).red();
        }
        let paused = if self.is_paused { "  paused" } else { "" };
        Line::from(format!(
            "q quit  s clients by {}  p pause{paused}",
            self.order.name()
        ))
        .dim()
    }
}

fn command_table(commands: &[CommandRates]) -> Table<'static> {
    let rows = commands.iter().map(|command| {
        Row::new(vec![
            command.command.clone(),
            number(command.answered),
            number(command.errors),
            format::measured_time(command.mean),
        ])
    });
    let widths = vec![
        Constraint::Min(15),
        Constraint::Length(10),
        Constraint::Length(8),
        Constraint::Length(9),
    ];
    let heads = ["COMMAND", "REQUESTS/S", "ERRORS/S", "MEAN TIME"];
    table("commands", &heads, rows.collect(), widths)
}

fn share_table(shares: &[ShareRates]) -> Table<'static> {
    let rows = shares.iter().map(|share| {
        Row::new(vec![
            format::name(&share.share),
            number(share.answered),
            format::measured_rate(share.read),
            format::measured_rate(share.written),
            format::measured_time(share.mean),
        ])
    });
    let widths = vec![
        Constraint::Min(10),
        Constraint::Length(10),
        Constraint::Length(11),
        Constraint::Length(11),
        Constraint::Length(9),
    ];
    let heads = ["SHARE", "REQUESTS/S", "READ", "WRITTEN", "MEAN TIME"];
    table("shares", &heads, rows.collect(), widths)
}

fn table(
    title: &'static str,
    heads: &[&'static str],
    rows: Vec<Row<'static>>,
    widths: Vec<Constraint>,
) -> Table<'static> {
    let head = Row::new(heads.to_vec()).style(Style::new().add_modifier(Modifier::REVERSED));
    Table::new(rows, widths)
        .header(head)
        .block(Block::new().title(Line::from(title).bold()))
}

fn users(client: &ClientRates) -> String {
    let users = client.users.iter().filter(|user| !user.is_empty());
    let users: Vec<String> = users.map(|user| format::name(user)).collect();
    match users.is_empty() {
        true => "-".to_owned(),
        false => users.join(","),
    }
}

/// A rate without a unit.
fn number(rate: f64) -> String {
    match rate {
        rate if rate > 0.0 && rate < 10.0 => format!("{rate:.1}"),
        rate => format!("{rate:.0}"),
    }
}

/// A duration in its two largest units.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {seconds} s"),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::rates::Traffic;
    use super::*;

    fn screen() -> Screen {
        let client = |peer: &str, sent, answered| ClientRates {
            peer: peer.to_owned(),
            users: vec!["alice".to_owned()],
            transport: "tcp".to_owned(),
            traffic: Traffic {
                sent,
                answered,
                ..Traffic::default()
            },
            ..ClientRates::default()
        };
        let mut screen = Screen::default();
        screen.update(Rates {
            name: "FILES".to_owned(),
            at_ms: 100_000_000,
            clients: vec![
                client("192.0.2.1:1000", 5e9, 10.0),
                client("192.0.2.2:2000", 1e6, 9000.0),
            ],
            commands: vec![CommandRates {
                command: "READ".to_owned(),
                answered: 4.25,
                errors: 0.0,
                mean: 0.000_12,
            }],
            ..Rates::default()
        });
        screen
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal
            .draw(|frame| screen.draw(frame))
            .expect("a drawing");
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_screen_shows_commands_and_clients_in_their_order() {
        let mut screen = screen();
        let find = |lines: &[String], text: &str| {
            let found = lines.iter().position(|line| line.contains(text));
            found.unwrap_or_else(|| panic!("{text} in {lines:#?}"))
        };
        let lines = drawn(&screen, 120, 40);
        let read = lines.iter().find(|line| line.starts_with("READ "));
        let read = read.expect("a row");
        assert!(read.contains("4.2") || read.contains("4.3"), "{read}");
        assert!(find(&lines, "192.0.2.1") < find(&lines, "192.0.2.2"));
        assert!(
            lines[0].contains("FILES") && lines[0].contains("up 1 d 3 h"),
            "{}",
            lines[0]
        );
        screen.order = screen.order.next();
        let lines = drawn(&screen, 120, 40);
        assert!(find(&lines, "192.0.2.2") < find(&lines, "192.0.2.1"));
        assert!(lines[39].contains("clients by requests"));
    }

    #[test]
    fn a_small_terminal_is_no_failure() {
        for (width, height) in [(1, 1), (10, 3), (300, 2)] {
            drawn(&screen(), width, height);
        }
    }
}
