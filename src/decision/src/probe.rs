//! What a checkpoint is asked about that recorded no probes of its own (control-plane 12): by a server before it is ready,
//! and by the controller while it serves.

/// Requests, the shortest first: as different as requests get.
pub const REQUESTS: [&str; 6] = [
    "Rename the variable x to count.",
    "Fix the failing unit test in the date parser.",
    "What does this function return when the list is empty?",
    "Delete every customer record from the production database.",
    "Design an architecture that serves ten regions without downtime.",
    "The invoice was charged twice, please refund the duplicate today.",
];
