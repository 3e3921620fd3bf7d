//! The limit of open files, which is the limit of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process's limit of open files as far as it may (to the hard limit) and answers what it is then;
/// `None` when there is no limit. To be called once, at start.
pub fn raise_file_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            current
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_hard_limit_afterwards() {
        let raised = raise_file_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(raised, limit.current);
        assert_eq!(limit.current, limit.maximum);
    }
}
