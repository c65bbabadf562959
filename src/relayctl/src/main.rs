//! `relayctl`: what an operator types (control-plane 18). Parses and dispatches.

fn main() {}
