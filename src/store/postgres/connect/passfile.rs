//! The password file: lines of `host:port:database:user:password`, `*` matching everything, the first that matches counts.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use zeroize::Zeroizing;

use super::parameters::Parameters;

/// Where a password may be used.
pub(super) struct Place<'a> {
    /// The host or socket's directory; libpq's own directory is called `localhost`.
    pub host: &'a str,
    pub port: u16,
    pub database: &'a str,
    pub user: &'a str,
}

/// The password for the place, if the file exists, belongs to its user alone and has one.
pub(super) fn find(
    parameters: &Parameters,
    variable: &dyn Fn(&str) -> Option<String>,
    place: &Place<'_>,
) -> Option<Zeroizing<String>> {
    let path = match parameters.get("passfile") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(variable("HOME")?).join(".pgpass"),
    };
    let metadata = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
    if metadata.permissions().mode() & 0o077 != 0 {
        let path = path.display();
        tracing::warn!("{path}: others can read this password file, so it is not used: run chmod 0600 {path}");
        return None;
    }
    let text = Zeroizing::new(std::fs::read_to_string(&path).ok()?);
    text.lines().find_map(|line| password(line, place))
}

fn password(line: &str, place: &Place<'_>) -> Option<Zeroizing<String>> {
    let fields = (!line.starts_with('#')).then(|| split(line))?;
    let [host, port, database, user, password] = fields.as_slice() else {
        return None;
    };
    let matches = |field: &Field, value: &str| field.anything || field.text.as_str() == value;
    let all = matches(host, place.host)
        && matches(port, &place.port.to_string())
        && matches(database, place.database)
        && matches(user, place.user);
    all.then(|| password.text.clone())
}

#[derive(Default)]
struct Field {
    text: Zeroizing<String>,
    /// A star that is not escaped.
    anything: bool,
}

/// The fields; `\` before a character takes it as it is, and the last field may have colons.
fn split(line: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut field = Field::default();
    let mut start = 0;
    let mut characters = line.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => field.text.extend(characters.next().map(|(_, escaped)| escaped)),
            ':' if fields.len() < 4 => {
                field.anything = &line[start..at] == "*";
                fields.push(std::mem::take(&mut field));
                start = at + 1;
            }
            other => field.text.push(other),
        }
    }
    fields.push(field);
    fields
}
