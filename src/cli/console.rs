//! Questions and answers on the terminal. The end of input is never an agreement.

use std::fmt::Display;
use std::io::{BufRead, Result, Write};

/// Where a command asks and tells.
pub struct Console<'a> {
    input: &'a mut dyn BufRead,
    output: &'a mut dyn Write,
}

impl<'a> Console<'a> {
    /// A console over any streams.
    pub fn new(input: &'a mut dyn BufRead, output: &'a mut dyn Write) -> Self {
        Console { input, output }
    }

    /// Prints a line.
    pub fn say(&mut self, line: impl Display) -> Result<()> {
        writeln!(self.output, "{line}")
    }

    /// Where to tell, for whoever needs no more.
    pub fn output(&mut self) -> &mut dyn Write {
        self.output
    }

    /// Asks and waits for a line, which is answered trimmed; `None` at the end of input.
    pub fn ask(&mut self, question: impl Display) -> Result<Option<String>> {
        write!(self.output, "{question}")?;
        self.output.flush()?;
        let mut line = String::new();
        match self.input.read_line(&mut line)? {
            0 => self.say("").map(|()| None),
            _ => Ok(Some(line.trim().to_owned())),
        }
    }

    /// Asks until the answer is `y`, `n` or empty, which means `default`; `None` at the end of input.
    pub fn yes_or_no(&mut self, question: &str, default: bool) -> Result<Option<bool>> {
        let choices = if default { "Yn" } else { "yN" };
        loop {
            match self.ask(format_args!("{question} ({choices}): "))?.as_deref() {
                None => return Ok(None),
                Some("") => return Ok(Some(default)),
                Some("y" | "Y") => return Ok(Some(true)),
                Some("n" | "N") => return Ok(Some(false)),
                Some(_) => self.say("Please answer y or n.")?,
            }
        }
    }

    /// Whether the operator wants to go on after `warning`: only a capital `Y` is a yes.
    pub fn confirm(&mut self, warning: impl Display) -> Result<bool> {
        self.say(warning)?;
        Ok(self.ask("Continue (Y/n): ")?.as_deref() == Some("Y"))
    }

    /// Whether the operator agrees to a change, of which nothing is lost: `y` or `Y`.
    pub fn confirm_change(&mut self, change: impl Display) -> Result<bool> {
        self.say(change)?;
        Ok(self.ask("Continue (y/N): ")?.is_some_and(|answer| answer.eq_ignore_ascii_case("y")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(input: &str, f: impl FnOnce(&mut Console<'_>) -> Result<T>) -> (T, String) {
        let mut output = Vec::new();
        let answer = f(&mut Console::new(&mut input.as_bytes(), &mut output)).unwrap();
        (answer, String::from_utf8(output).unwrap())
    }

    #[test]
    fn only_a_capital_y_confirms() {
        for (input, expected) in [("Y\n", true), ("y\n", false), ("\n", false), ("", false), ("yes\n", false)] {
            assert_eq!(with(input, |c| c.confirm("Sure?")).0, expected, "{input:?}");
        }
    }

    #[test]
    fn a_change_is_confirmed_by_y_alone() {
        for (input, expected) in [("Y\n", true), ("y\n", true), ("\n", false), ("", false), ("yes\n", false)] {
            assert_eq!(with(input, |c| c.confirm_change("Change it?")).0, expected, "{input:?}");
        }
    }

    #[test]
    fn yes_or_no_asks_again_after_a_wrong_answer() {
        let (answer, output) = with("maybe\nn\n", |c| c.yes_or_no("Go", true));
        assert_eq!(answer, Some(false));
        assert_eq!(output.matches("Go (Yn): ").count(), 2);
        assert_eq!(with("\n", |c| c.yes_or_no("Go", false)).0, Some(false));
        assert_eq!(with("", |c| c.yes_or_no("Go", true)).0, None);
    }
}
