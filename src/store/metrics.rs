//! What a store tells about its load: numbers only, never IDs.

/// A snapshot of a store's counters. Depths are of now, everything else counts since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreMetrics {
    /// The bounded line of batches to be written.
    pub writes: LineMetrics,
    /// The bounded line of reads.
    pub reads: LineMetrics,
    /// Commits.
    pub groups: u64,
    /// Committed operations.
    pub operations: u64,
    /// Batches that failed, whatever the reason.
    pub failures: u64,
    /// Round trips to a database that is elsewhere.
    pub round_trips: u64,
}

/// A bounded line of waiting work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineMetrics {
    /// How many stand in it, those in work included.
    pub depth: u64,
    /// How often somebody found it full and had to wait.
    pub full: u64,
    /// How often somebody waited in vain and was answered [`super::StoreError::Overloaded`].
    pub refused: u64,
}
