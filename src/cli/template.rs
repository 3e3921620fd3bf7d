//! The INI file that `init` writes: the shipped file, which documents every key, with the operator's values put in.

use super::error::CommandError;
use crate::settings::keys::{self, Key};

/// The shipped `config/smp-server.ini`.
pub const SHIPPED: &str = include_str!("../../config/smp-server.ini");

/// `template` with the lines of `values` set, also where they are commented out. Everything else stays as it is.
///
/// # Errors
/// A value has a line break or another control character, or `template` has no line for the key.
pub fn fill(template: &str, values: &[(&Key, String)]) -> Result<String, CommandError> {
    let mut lines: Vec<String> = template.lines().map(str::to_owned).collect();
    for (key, value) in values {
        if value.chars().any(char::is_control) {
            return Err(CommandError::refused(format!("a value for {} has control characters", key.title())));
        }
        let line = position(&lines, key)
            .ok_or_else(|| CommandError::refused(format!("the template of smp-server.ini lacks {}", key.title())))?;
        lines[line] = format!("{} = {}", key.name, value.trim());
    }
    Ok(lines.join("\n") + "\n")
}

/// The number of the line that sets `key`, or would if it were not a comment.
fn position(lines: &[String], key: &Key) -> Option<usize> {
    documented(lines.iter().map(String::as_str)).find(|(_, found)| *found == key).map(|(line, _)| line)
}

/// The lines that set a known key or would if they were not comments (`# key = value`), with their numbers.
pub fn documented<'a>(lines: impl Iterator<Item = &'a str>) -> impl Iterator<Item = (usize, &'static Key)> {
    let mut section = String::new();
    lines.enumerate().filter_map(move |(number, line)| {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
            return None;
        }
        let setting = line.strip_prefix("# ").unwrap_or(line);
        let (name, _) = setting.split_once(" = ").or_else(|| setting.strip_suffix(" =").map(|name| (name, "")))?;
        keys::find(&section, name).map(|key| (number, key))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::{self, Environment, Paths};

    fn paths() -> Paths {
        Paths { config: "/c".into(), log: "/l".into() }
    }

    #[test]
    fn every_key_is_documented_once_in_the_shipped_file() {
        let found: Vec<_> = documented(SHIPPED.lines()).map(|(_, key)| key).collect();
        for key in keys::ALL {
            assert_eq!(found.iter().filter(|other| **other == key).count(), 1, "{}", key.title());
        }
    }

    #[test]
    fn every_documented_key_has_a_comment_that_is_not_a_setting() {
        let lines: Vec<_> = SHIPPED.lines().collect();
        let settings: Vec<_> = documented(lines.iter().copied()).map(|(number, _)| number).collect();
        for (number, key) in documented(lines.iter().copied()) {
            let mut before =
                (0..number).rev().take_while(|line| lines[*line].starts_with("# ") || settings.contains(line));
            assert!(before.any(|line| !settings.contains(&line)), "{} has no explanation", key.title());
        }
    }

    #[test]
    fn defaults_are_documented_as_they_are() {
        let lines: Vec<_> = SHIPPED.lines().collect();
        for (number, key) in documented(lines.iter().copied()) {
            let Some(default) = key.default.filter(|_| lines[number].starts_with("# ")) else { continue };
            assert!(lines[number].ends_with(&format!("= {default}")), "{} is {default} by default", key.title());
        }
    }

    #[test]
    fn the_shipped_file_is_accepted_without_a_note() {
        let loaded = settings::parse(Path::new("x"), SHIPPED, &paths(), &Environment::default()).unwrap();
        assert_eq!(loaded.notes, []);
        assert!(loaded.settings.auth.create_password.is_none());
    }

    #[test]
    fn values_replace_lines_and_comments() {
        let template = "[AUTH]\n# About it.\n# create_password =\nnew_queues = on\n[WEB]\n# cert = x\n";
        let values = [(&keys::CREATE_PASSWORD, "p#w".to_owned()), (&keys::NEW_QUEUES, "off".to_owned())];
        let filled = fill(template, &values).unwrap();
        assert_eq!(filled, "[AUTH]\n# About it.\ncreate_password = p#w\nnew_queues = off\n[WEB]\n# cert = x\n");
        assert!(fill(template, &[(&keys::HOST, "h".to_owned())]).is_err());
        assert!(fill(template, &[(&keys::NEW_QUEUES, "on\n[X]".to_owned())]).is_err());
    }
}
