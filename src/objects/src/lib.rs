//! The local object API (control-plane 9): the Kubernetes API, as far as Relay uses it, over one SQLite file. Everything
//! that decides (schema, field ownership, patches) is a pure function; `database` and `rest` are the edge.

pub mod fields;
pub mod listen;
pub mod schema;
