//! Reads typed values out of the layers and collects every mistake on the way.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use super::keys::Key;
use super::layers::{Found, Layers};
use super::problem::Problem;

/// Hands out values and remembers what was wrong. After a mistake the value handed out is some allowed one: nobody sees
/// it, because settings with a mistake are refused as a whole.
pub struct Reader<'a> {
    layers: &'a Layers,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    /// A reader that starts with the mistakes already found.
    pub fn new(layers: &'a Layers, problems: Vec<Problem>) -> Self {
        Reader { layers, problems }
    }

    /// Every mistake that was met.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// What is written for `key`, if anything.
    pub fn find(&self, key: &Key) -> Option<Found<'a>> {
        self.layers.find(key)
    }

    /// What is written for `key`, as `parse` understands it; `None` if the key is absent or wrong. `allowed` completes the
    /// sentence "allowed: ...".
    pub fn parse<T>(&mut self, key: &Key, allowed: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let found = self.layers.find(key)?;
        let parsed = parse(found.value);
        if parsed.is_none() {
            self.wrong(key, &format!("allowed: {allowed}"));
        }
        parsed
    }

    /// What is written for `key`, as `parse` understands it, which says what is wrong (and shows no secret).
    pub fn explain<T, E: Display>(&mut self, key: &Key, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        let found = self.layers.find(key)?;
        parse(found.value).map_err(|error| self.wrong(key, &error.to_string())).ok()
    }

    /// A whole number in a range; `unit` is for the message.
    pub fn number<T>(&mut self, key: &Key, range: RangeInclusive<T>, unit: &str) -> T
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        self.optional_number(key, range.clone(), unit).unwrap_or(*range.start())
    }

    /// A whole number in a range, if the key is there.
    pub fn optional_number<T>(&mut self, key: &Key, range: RangeInclusive<T>, unit: &str) -> Option<T>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let allowed = format!("{unit}, a whole number from {} to {}", range.start(), range.end());
        self.parse(key, &allowed, |text| text.parse().ok().filter(|n| range.contains(n)))
    }

    /// A number of seconds in a range.
    pub fn seconds(&mut self, key: &Key, range: RangeInclusive<u64>) -> Duration {
        Duration::from_secs(self.number(key, range, "seconds"))
    }

    /// `on` or `off`.
    pub fn switch(&mut self, key: &Key) -> bool {
        self.choice(key, &[("on", true), ("off", false)]).unwrap_or_default()
    }

    /// One of several words.
    pub fn choice<T: Copy>(&mut self, key: &Key, choices: &[(&str, T)]) -> Option<T> {
        let words: Vec<_> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
        let chosen = |text: &str| choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        self.parse(key, &words.join(" or "), chosen)
    }

    /// Notes that the value of `key` is wrong, and why. The value is shown unless it is secret.
    pub fn wrong(&mut self, key: &Key, why: &str) {
        let Some(found) = self.layers.find(key) else { return };
        let shown = if key.secret { "(not shown)".to_owned() } else { found.value.to_owned() };
        let comment = !key.secret && (found.value.contains(" #") || found.value.contains(" ;"));
        let hint = if comment { " (a comment needs a line of its own)" } else { "" };
        let text = format!("{} = {shown}: {why}{hint}", key.title());
        self.problems.push(Problem { place: found.place(key), text });
    }
}
