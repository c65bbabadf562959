//! The command line of program `laya` (wire.md 18).

/// stub
pub fn run(_args: Vec<std::ffi::OsString>, _environment: Vec<(String, String)>) -> u8 { 0 }
