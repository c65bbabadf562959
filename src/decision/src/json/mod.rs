//! JSON as Laya's HTTP API reads and writes it (wire.md 4.1, 4.2, 6.5): ordered objects, integers of any size, NaN and
//! infinities, lone surrogates, UTF-8/16/32 input. It knows values and their text forms, nothing about questions.
//!
//! ```
//! use decision::json::{self, Value};
//!
//! let value = json::read(br#"{"b": 1e5, "a": [12345678901234567890, NaN]}"#)?;
//! assert_eq!(json::write(&value), r#"{"b":100000.0,"a":[12345678901234567890,NaN]}"#);
//! # Ok::<(), json::ReadError>(())
//! ```

mod encoding;
mod integer;
mod number_text;
mod object;
mod python_text;
mod reader;
mod text;
mod unprintable;
mod value;
mod writer;

pub use integer::Integer;
pub use number_text::float_text;
pub use object::Object;
pub use python_text::{json_text, key_text, python_repr, python_str, repr_text, trim};
pub use reader::{MAX_DEPTH, MAX_INTEGER_DIGITS, ReadError, read, read_keeping_duplicates};
pub use text::Text;
pub use value::Value;
pub use writer::{write, write_pretty, write_string};
