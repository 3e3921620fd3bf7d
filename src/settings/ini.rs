//! The INI file as the Haskell server writes and reads it, as a source of the `config` crate.
//!
//! The crate's own INI format is not used: it treats backslashes and quotes in values as escapes, keeps no line numbers and
//! stops at the first mistake. Here a value is everything after the first `=` or `:` of the line, trimmed; comments are
//! whole lines that start with `#` or `;`; of a repeated key the first counts. Names are compared without case.

use std::collections::HashMap;
use std::path::Path;

use config::{Map, Source, Value, ValueKind};

use super::problem::Problem;

/// One `key = value` line.
#[derive(Clone)]
pub struct Entry {
    /// Name of the section as written.
    pub section: String,
    /// Name of the key as written.
    pub key: String,
    /// `file:line`.
    pub place: String,
    value: String,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: [{}] {}", self.place, self.section, self.key)
    }
}

/// A file that was read, its mistakes included.
#[derive(Clone, Debug, Default)]
pub struct IniFile {
    entries: Vec<Entry>,
    repeated: Vec<Entry>,
    problems: Vec<Problem>,
}

impl IniFile {
    /// Reads `text`; `path` is only for messages.
    pub fn parse(path: &Path, text: &str) -> Self {
        let mut file = IniFile::default();
        let mut section = None;
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            file.read_line(&format!("{}:{number}", path.display()), line.trim(), &mut section);
        }
        file
    }

    fn read_line(&mut self, place: &str, line: &str, section: &mut Option<String>) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return;
        }
        if let Some(name) = line.strip_prefix('[') {
            match name.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty()) {
                Some(name) => *section = Some(name.to_owned()),
                None => self.problem(place, "a section is written as [NAME]"),
            }
            return;
        }
        match (section, line.split_once(['=', ':'])) {
            (Some(section), Some((key, value))) if !key.trim().is_empty() => self.add(place, section, key, value),
            (None, Some(_)) => self.problem(place, "a key stands before the first [SECTION]"),
            _ => self.problem(place, "a line is `key = value`, `[SECTION]`, or a comment that starts with #"),
        }
    }

    fn add(&mut self, place: &str, section: &str, key: &str, value: &str) {
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        let entry = Entry { section: section.to_owned(), key, place: place.to_owned(), value };
        let same = |e: &Entry| e.section.eq_ignore_ascii_case(section) && e.key.eq_ignore_ascii_case(&entry.key);
        let known = self.entries.iter().any(same);
        if known { self.repeated.push(entry) } else { self.entries.push(entry) }
    }

    /// The text of a broken line is not repeated in the message: it may be a password.
    fn problem(&mut self, place: &str, text: &str) {
        self.problems.push(Problem { place: place.to_owned(), text: text.to_owned() });
    }

    /// Keys in the order of the file, without repetitions.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Repetitions of keys, which have no effect.
    pub fn repeated(&self) -> &[Entry] {
        &self.repeated
    }

    /// Lines that are nothing of what may stand there.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl Source for IniFile {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    /// A table for each section, names in lower case as the source for environment variables has them; the origin of
    /// each value is its place in the file.
    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        let mut sections: HashMap<String, Map<String, Value>> = HashMap::new();
        for entry in &self.entries {
            let value = Value::new(Some(&entry.place), ValueKind::String(entry.value.clone()));
            sections.entry(entry.section.to_lowercase()).or_default().insert(entry.key.to_lowercase(), value);
        }
        Ok(sections.into_iter().map(|(name, table)| (name, Value::new(None, ValueKind::Table(table)))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> IniFile {
        IniFile::parse(Path::new("x.ini"), text)
    }

    fn values(text: &str) -> Vec<(String, String, String)> {
        let file = parse(text);
        assert_eq!(file.problems(), []);
        file.entries.into_iter().map(|e| (e.section, e.key, e.value)).collect()
    }

    fn one(section: &str, key: &str, value: &str) -> Vec<(String, String, String)> {
        vec![(section.into(), key.into(), value.into())]
    }

    #[test]
    fn values_are_taken_as_they_stand() {
        assert_eq!(values("[A]\nk = a\\n#b;'c\"=d:e\n"), one("A", "k", "a\\n#b;'c\"=d:e"));
        assert_eq!(values("[A]\nurl: http://h:1/?a=b"), one("A", "url", "http://h:1/?a=b"));
        assert_eq!(values("\u{feff}[ A ]\r\n  a.b =\r\n"), one("A", "a.b", ""));
    }

    #[test]
    fn comments_are_whole_lines() {
        assert_eq!(values("# x\n; y\n[A]\n  # k = 1\n;k=2\nk=3\n\n"), one("A", "k", "3"));
    }

    #[test]
    fn of_a_repeated_key_the_first_counts() {
        let file = parse("[A]\nk = 1\n[B]\nk = 2\n[a]\nK = 3\n");
        assert_eq!(file.entries().len(), 2);
        assert_eq!(file.repeated()[0].place, "x.ini:6");
    }

    #[test]
    fn every_broken_line_is_reported_with_its_number_and_without_its_text() {
        let file = parse("k = secret1\n[A\nsecret2\n= secret3\n[]\n[B]\nk = v\n");
        let places: Vec<_> = file.problems().iter().map(|p| p.place.as_str()).collect();
        assert_eq!(places, ["x.ini:1", "x.ini:2", "x.ini:3", "x.ini:4", "x.ini:5"]);
        assert!(!format!("{file:?}").contains("secret"));
        assert_eq!(file.entries().len(), 1);
    }
}
