//! Transmissions: authorization, session, correlation and entity IDs, command.
