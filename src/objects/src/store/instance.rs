//! Which store this is. The id is in the store and in the file `instance`, so that a store that takes the place of a lost one
//! knows what was started before.

use std::path::Path;

use rusqlite::Connection;

use crate::database::{Meta, meta, put_meta};
use crate::options::{Notice, ObjectStoreOptions, OpenError};

/// Fewest hex digits of an id: so many are on labels.
const SHORTEST: usize = 12;
/// Most bytes of the file.
const LONGEST: u64 = 128;

fn is_id(text: &str) -> bool {
    text.len() >= SHORTEST && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
}

/// The id, and whether there was a store of this id before whose file has gone.
pub(super) struct Settled {
    pub(super) id: String,
    pub(super) is_replaced: bool,
}

/// Finds or makes the id, and sees to it that it is in both places.
pub(super) fn settle(
    connection: &Connection,
    instance: &Path,
    options: &ObjectStoreOptions,
    notices: &mut Vec<Notice>,
) -> Result<Settled, OpenError> {
    let told = |error: rusqlite::Error| OpenError::File {
        path: connection.path().unwrap_or_default().into(),
        reason: store::file::reason(&error),
    };
    let noted = read(instance)?;
    let stored = meta(connection, Meta::StoreId).map_err(told)?;
    let usable = noted.clone().filter(|text| is_id(text));
    let recovered = options.recovered_id.clone().filter(|text| is_id(text));
    let known = usable.or(recovered);
    let is_replaced = stored.is_none() && known.is_some();
    let id = stored
        .clone()
        .or(known)
        .unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string());
    if let Some(found) = noted.as_ref().filter(|found| **found != id) {
        notices.push(Notice::OtherInstance {
            found: found.clone(),
        });
    }
    if noted.as_ref() != Some(&id) {
        let text = format!("{id}\n");
        let written = files::write_whole(instance, text.as_bytes(), files::PRIVATE);
        written.map_err(|source| OpenError::Instance {
            path: instance.to_owned(),
            source,
        })?;
    }
    if stored.is_none() {
        put_meta(connection, Meta::StoreId, &id).map_err(told)?;
    }
    Ok(Settled { id, is_replaced })
}

fn read(instance: &Path) -> Result<Option<String>, OpenError> {
    match files::read_text(instance, LONGEST) {
        Ok(file) => Ok(Some(file.text.trim().to_owned())),
        Err(error) if error.is_not_found() => Ok(None),
        // Whatever else is there is not an id of ours; it is said and written over.
        Err(files::ReadError::TooLarge { .. } | files::ReadError::NotText { .. }) => {
            Ok(Some(String::new()))
        }
        Err(error) => Err(OpenError::Instance {
            path: instance.to_owned(),
            source: std::io::Error::other(error.to_string()),
        }),
    }
}
