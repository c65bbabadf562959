//! Where the text of a request comes from, and the bounds of it.

use std::ffi::OsStr;
use std::io::Read;

use crate::error::CliError;

/// More than the longest request can have in UTF-8.
const MAX_BYTES: u64 = 1 << 20;

/// The text itself, or standard input for `-`.
pub(super) fn text(argument: &OsStr) -> Result<String, CliError> {
    if argument != "-" {
        let text = argument
            .to_str()
            .ok_or_else(|| CliError::usage("the request is not valid UTF-8"))?;
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            CliError::usage(format!(
                "cannot read the request from standard input: {error}"
            ))
        })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CliError::usage(format!(
            "the request on standard input has more than {MAX_BYTES} bytes"
        ))
        .hint("a request has at most 100000 UTF-16 units"));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::usage(format!(
            "the request on standard input is not valid UTF-8 at byte {at}"
        ))
    })?;
    // What a shell or an editor puts behind the last line is not part of the request.
    let kept = text.trim_end_matches(['\n', '\r']).len();
    text.truncate(kept);
    Ok(text)
}
