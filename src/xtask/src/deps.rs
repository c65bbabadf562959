//! `cargo xtask deps`: the list of crates in design.md section 1 is the architecture. A crate may depend only on
//! crates above it, `testkit` on any and only in tests, and some third-party crates may not be in the tree at all.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::command::{cargo, output};

/// Crates in the order of design.md section 1. Programs stand in one row of that list: none may depend on another.
const ORDER: &[&str] = &[
    "decision",
    "routing",
    "api",
    "files",
    "cli",
    "service",
    "laya",
    "volumes",
    "store",
    "objects",
    "serve",
    "router",
    "backend",
    "controller",
    "agent",
    "daemon",
];
const PROGRAMS: &[&str] = &["relay", "relayctl", "relayd"];
/// Not part of any program.
const TOOLS: &[&str] = &["testkit", "xtask", "end-to-end"];
/// Third-party crates that must never be pulled in: a second TLS provider panics at the first connection, and OpenSSL
/// does not link statically.
const BANNED: &[&str] = &["aws-lc-rs", "aws-lc-sys", "openssl-sys", "native-tls"];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    path: Option<String>,
}

/// Checks the whole workspace.
pub(crate) fn run() -> Result<(), String> {
    let text = output(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Metadata = serde_json::from_str(&text)
        .map_err(|error| format!("cannot read cargo metadata: {error}"))?;
    let wrong = problems(&metadata.packages);
    if wrong.is_empty() {
        let ours = metadata
            .packages
            .iter()
            .filter(|package| package.source.is_none())
            .count();
        eprintln!(
            "deps: {ours} crates in order, {} in the tree",
            metadata.packages.len()
        );
        Ok(())
    } else {
        Err(format!(
            "the dependency order of design.md section 1 is broken:\n  {}",
            wrong.join("\n  ")
        ))
    }
}

fn problems(packages: &[Package]) -> Vec<String> {
    let rank: BTreeMap<&str, usize> = ORDER
        .iter()
        .enumerate()
        .map(|(at, name)| (*name, at))
        .chain(PROGRAMS.iter().map(|name| (*name, ORDER.len())))
        .chain(TOOLS.iter().map(|name| (*name, ORDER.len() + 1)))
        .collect();
    let mut wrong = Vec::new();
    for package in packages {
        if package.source.is_some() {
            if BANNED.contains(&package.name.as_str()) {
                wrong.push(format!(
                    "{} is in the tree: cargo tree -i {}",
                    package.name, package.name
                ));
            }
            continue;
        }
        let Some(own) = rank.get(package.name.as_str()) else {
            wrong.push(format!(
                "{} is not in the list: add it to design.md and to xtask",
                package.name
            ));
            continue;
        };
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some())
        {
            let other = rank.get(dependency.name.as_str());
            let only_in_tests = dependency.kind.as_deref() == Some("dev");
            let is_tool = TOOLS.contains(&dependency.name.as_str());
            let allowed = if is_tool {
                only_in_tests
            } else {
                other.is_some_and(|other| other < own)
            };
            if !allowed {
                wrong.push(format!(
                    "{} must not depend on {}",
                    package.name, dependency.name
                ));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|(name, kind)| Dependency {
                name: (*name).to_owned(),
                kind: kind.map(str::to_owned),
                path: Some(format!("src/{name}")),
            })
            .collect();
        Package {
            name: name.to_owned(),
            source: None,
            dependencies,
        }
    }

    #[test]
    fn accepts_arrows_that_point_up() {
        let packages = [
            package("routing", &[("decision", None)]),
            package("relay", &[("routing", None), ("testkit", Some("dev"))]),
            package("xtask", &[("routing", None)]),
        ];
        assert_eq!(problems(&packages), Vec::<String>::new());
    }

    #[test]
    fn refuses_arrows_that_point_down_or_sideways_and_strangers() {
        let packages = [
            package("decision", &[("routing", None)]),
            package("relay", &[("relayd", None)]),
            package("relayd", &[("testkit", None)]),
            package("helpers", &[]),
        ];
        let wrong = problems(&packages).join("\n");
        for expected in [
            "decision must not depend on routing",
            "relay must not depend on relayd",
            "relayd must not depend on testkit",
        ] {
            assert!(
                wrong.contains(expected),
                "{expected} is missing in:\n{wrong}"
            );
        }
        assert!(wrong.contains("helpers is not in the list"), "{wrong}");
    }

    #[test]
    fn refuses_a_second_tls_provider() {
        let stranger = Package {
            name: "aws-lc-rs".to_owned(),
            source: Some("registry".to_owned()),
            dependencies: Vec::new(),
        };
        assert_eq!(problems(&[stranger]).len(), 1);
    }
}
