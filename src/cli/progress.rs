//! How far a long command is: a bar on a terminal, else a line now and then, as for a log.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::console::Console;

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Between two looks at the clock, in calls of [`Progress::update`].
const LOOK_EVERY: u32 = 256;

/// Shows how far a step is.
pub struct Progress {
    step: &'static str,
    bar: Option<ProgressBar>,
    calls: u32,
    told: Instant,
    every: Duration,
}

impl Progress {
    /// Begins to show `step` ("Reading queues"), as a bar if standard error is a terminal.
    pub fn start(step: &'static str) -> Self {
        let bar = io::stderr().is_terminal().then(|| new_bar(step));
        Progress { step, bar, calls: 0, told: Instant::now(), every: LINE_EVERY }
    }

    /// To be called for each of `items`; `parts` are those done and all of them, in any unit. Cheap.
    pub fn update(&mut self, console: &mut Console<'_>, items: u64, parts: Option<(u64, u64)>) {
        self.calls = self.calls.wrapping_add(1);
        if !self.calls.is_multiple_of(LOOK_EVERY) {
            return;
        }
        match &self.bar {
            Some(bar) => {
                if let Some((done, all)) = parts {
                    bar.set_length(all);
                    bar.set_position(done);
                }
                bar.set_message(items.to_string());
            }
            None if self.told.elapsed() >= self.every => {
                self.told = Instant::now();
                // A lost line of progress is no reason to stop.
                let _ = console.say(line(self.step, items, parts));
            }
            None => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(step: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(0).with_prefix(step);
    let template = "{prefix} [{bar:30}] {percent:>3}%  {msg} items, {elapsed}, {eta} left";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

fn line(step: &str, items: u64, parts: Option<(u64, u64)>) -> String {
    match parts {
        Some((done, all)) if all > 0 => format!("{step}: {items} items, {}%", done.min(all) * 100 / all),
        _ => format!("{step}: {items} items"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_a_line_is_told_now_and_then() {
        let mut output = Vec::new();
        let mut console_input: &[u8] = b"";
        let mut console = Console::new(&mut console_input, &mut output);
        let mut progress = Progress::start("Reading");
        (progress.bar, progress.every) = (None, Duration::ZERO);
        for item in 1..=2 * u64::from(LOOK_EVERY) {
            progress.update(&mut console, item, Some((item, 1024)));
        }
        drop(progress);
        let text = String::from_utf8(output).unwrap();
        assert_eq!(text, "Reading: 256 items, 25%\nReading: 512 items, 50%\n");
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!(line("Reading", 3, Some((0, 0))), "Reading: 3 items");
        assert_eq!(line("Reading", 3, None), "Reading: 3 items");
    }
}
