//! A dataset frozen for a training run or an evaluation (training.md 3, control-plane 5): the rows in force with their
//! split, and those that are held out as a file of their own, each pinned by the digest of its bytes.

use decision::contract::Digest;
use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::origin::Split;
use super::row::Row;
use super::split::split_of;
use super::standing::InForce;

/// Rows as canonical JSONL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenFile {
    /// SHA-256 of the bytes.
    pub digest: Digest,
    /// How many rows it has.
    pub rows: usize,
    /// One canonical row a line, sorted by id, a final line break; empty without rows.
    pub jsonl: String,
}

/// What `POST /v1/dataset/snapshots` freezes; written as JSON it is the answer, without the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Every row that is not stale.
    pub file: FrozenFile,
    /// Those of them with split `test`.
    pub held_out: FrozenFile,
    /// Questions in force.
    pub in_force: InForce,
    /// The revision that was frozen.
    pub revision: u64,
}

impl FrozenFile {
    fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut jsonl = String::new();
        let mut count = 0;
        for row in rows {
            jsonl.push_str(&row.canonical());
            jsonl.push('\n');
            count += 1;
        }
        Self {
            digest: Digest::of(jsonl.as_bytes()),
            rows: count,
            jsonl,
        }
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct HeldOut<'a> {
            digest: &'a Digest,
            rows: usize,
        }
        let Self {
            file,
            held_out,
            in_force,
            revision,
        } = self;
        let FrozenFile { digest, rows, .. } = held_out;
        let mut answer = serializer.serialize_struct("Snapshot", 6)?;
        answer.serialize_field("digest", &file.digest)?;
        answer.serialize_field("rows", &file.rows)?;
        answer.serialize_field(
            "held_out",
            &HeldOut {
                digest,
                rows: *rows,
            },
        )?;
        answer.serialize_field("contract", &in_force.contract)?;
        answer.serialize_field("shape", &in_force.shape)?;
        answer.serialize_field("revision", revision)?;
        answer.end()
    }
}

/// Freezes a dataset at a revision. Each row carries its split; rows of one id (there should be one) keep their order.
#[must_use]
pub fn snapshot(rows: &[Row], in_force: &InForce, revision: u64) -> Snapshot {
    let usable = rows.iter().filter(|row| !row.standing(in_force).is_stale());
    let mut usable: Vec<Row> = usable
        .map(|row| match row.split() {
            Some(_) => row.clone(),
            None => row.with_split(split_of(row)),
        })
        .collect();
    usable.sort_by(|one, other| one.id().cmp(other.id()));
    let test = usable.iter().filter(|row| row.split() == Some(Split::Test));
    Snapshot {
        held_out: FrozenFile::of(test),
        file: FrozenFile::of(usable.iter()),
        in_force: in_force.clone(),
        revision,
    }
}
