//! The loop of `smbeam top`: keys, and new rates after each interval.

use std::io;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::activity;
use super::rates::Rates;
use super::screen::Screen;
use crate::failure::{Failure, Outcome};
use crate::local_server::LocalServer;

/// Shows the rates of a server until the user quits.
pub(super) fn show(server: &LocalServer, interval: Duration) -> Outcome {
    let failed = |error: io::Error| Failure::local("terminal", &error);
    let first = activity(server)?;
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let shown = run(&mut terminal, server, interval, first);
    ratatui::restore();
    shown.map_err(failed)
}

fn run(
    terminal: &mut DefaultTerminal,
    server: &LocalServer,
    interval: Duration,
    mut before: smbeam_server::activity::Activity,
) -> io::Result<()> {
    let mut screen = Screen::default();
    screen.update(Rates::between(&before, &before));
    // The first rates come soon.
    let mut next = Instant::now() + interval.min(Duration::from_millis(500));
    loop {
        terminal.draw(|frame| screen.draw(frame))?;
        if event::poll(next.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    if is_end(key) {
                        return Ok(());
                    }
                    change(&mut screen, key.code);
                }
                _ => {}
            }
            continue;
        }
        next = Instant::now() + interval;
        match activity(server) {
            Ok(after) => {
                if !screen.is_paused {
                    screen.update(Rates::between(&before, &after));
                }
                before = after;
            }
            // The server may start again.
            Err(failure) => screen.failure = Some(failure.to_string()),
        }
    }
}

fn is_end(key: KeyEvent) -> bool {
    let is_interrupt =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

fn change(screen: &mut Screen, key: KeyCode) {
    match key {
        KeyCode::Char('s') => screen.order = screen.order.next(),
        KeyCode::Char('p') => screen.is_paused = !screen.is_paused,
        _ => {}
    }
}
