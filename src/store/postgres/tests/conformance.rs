//! What every store must do.

use super::subject::PostgresSubject;

store_conformance!(PostgresSubject::new());
store_conformance_persistent!(PostgresSubject::new());
