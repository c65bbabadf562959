//! The shape of the database, in numbered steps. A step that was released is never changed; other parts of Relay add
//! theirs at the end.

/// One step: statements for either engine.
pub(crate) struct Migration {
    /// Counted from 1 without gaps.
    pub(crate) number: i64,
    statements: &'static str,
}

pub(crate) const ALL: &[Migration] = &[Migration {
    number: 1,
    statements: include_str!("migrations/0001_router.sql"),
}];

/// The same for SQLite, in order.
pub(crate) const SQLITE: &[fn() -> String] = &[|| ALL[0].sqlite()];

/// The number of the last step this program knows.
pub(crate) fn newest() -> i64 {
    ALL.last().map_or(0, |last| last.number)
}

/// The steps a database of version `from` lacks.
pub(crate) fn missing(from: i64) -> impl Iterator<Item = &'static Migration> {
    ALL.iter().filter(move |step| step.number > from)
}

impl Migration {
    /// For PostgreSQL, whose texts sort by the database's language unless told otherwise.
    pub(crate) fn postgres(&self) -> String {
        self.statements.to_owned()
    }

    /// For SQLite, which compares texts by byte, and keeps rows in the order of a key only if that is called `INTEGER`.
    pub(crate) fn sqlite(&self) -> String {
        let plain = self.statements.replace(" COLLATE \"C\"", "");
        plain.replace("BIGINT PRIMARY KEY", "INTEGER PRIMARY KEY")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_from_one_without_gaps() {
        let numbers: Vec<_> = ALL.iter().map(|step| step.number).collect();
        let wanted: Vec<_> = (1..).take(ALL.len()).collect();
        assert_eq!(numbers, wanted);
        let sqlite: Vec<_> = SQLITE.iter().map(|step| step()).collect();
        let each: Vec<_> = ALL.iter().map(Migration::sqlite).collect();
        assert_eq!(sqlite, each);
    }
}
