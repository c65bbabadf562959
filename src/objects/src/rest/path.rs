//! What a path names.

use std::sync::Arc;

use super::documents::Document;
use crate::catalog::{Catalog, Nature, Resource, Scope};
use crate::failure::Failure;
use crate::write::Part;

/// What a request is about.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// `/livez`, `/readyz`, `/healthz`.
    Health,
    /// Discovery and schemas.
    Document(Document),
    /// Objects.
    Objects(Objects),
}

/// One object, or those of a kind in one namespace or all.
#[derive(Debug, Clone)]
pub(super) struct Objects {
    pub(super) resource: Arc<Resource>,
    /// Empty for all namespaces, and for kinds outside of them.
    pub(super) namespace: String,
    pub(super) name: Option<String>,
    pub(super) part: Part,
}

/// Parses the path of a URL.
pub(super) fn parse(catalog: &Catalog, path: &str) -> Result<Target, Failure> {
    let segments = segments(path)?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["livez" | "readyz" | "healthz"] => Ok(Target::Health),
        ["version"] => Ok(Target::Document(Document::Version)),
        ["api"] => Ok(Target::Document(Document::Versions)),
        ["apis"] => Ok(Target::Document(Document::Groups)),
        ["apis", group] => known(catalog, group, None)
            .map(|()| Target::Document(Document::Group((*group).to_owned()))),
        ["api", version] => resources(catalog, "", version),
        ["apis", group, version] => resources(catalog, group, version),
        ["openapi", "v3"] => Ok(Target::Document(Document::OpenApiIndex)),
        ["openapi", "v3", "api", version] => open_api(catalog, "", version),
        ["openapi", "v3", "apis", group, version] => open_api(catalog, group, version),
        ["api", version, rest @ ..] => objects(catalog, "", version, rest),
        ["apis", group, version, rest @ ..] => objects(catalog, group, version, rest),
        _ => Err(Failure::no_such_path()),
    }
}

/// The parts of a path, decoded. A slash at the end means nothing.
fn segments(path: &str) -> Result<Vec<String>, Failure> {
    let path = path.trim_start_matches('/');
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/')
        .map(|part| decode(part).ok_or_else(Failure::no_such_path))
        .collect()
}

/// Undoes percent encoding. A part is never empty, and never leads elsewhere.
fn decode(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    let is_good = !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '\0']);
    is_good.then_some(text)
}

fn known(catalog: &Catalog, group: &str, version: Option<&str>) -> Result<(), Failure> {
    let groups = catalog.groups();
    let found = groups
        .iter()
        .any(|(known, served)| *known == group && version.is_none_or(|version| version == *served));
    found.then_some(()).ok_or_else(Failure::no_such_path)
}

fn resources(catalog: &Catalog, group: &str, version: &str) -> Result<Target, Failure> {
    known(catalog, group, Some(version))?;
    Ok(Target::Document(Document::Resources {
        group: group.to_owned(),
        version: version.to_owned(),
    }))
}

fn open_api(catalog: &Catalog, group: &str, version: &str) -> Result<Target, Failure> {
    known(catalog, group, Some(version))?;
    Ok(Target::Document(Document::OpenApi {
        group: group.to_owned(),
        version: version.to_owned(),
    }))
}

fn objects(
    catalog: &Catalog,
    group: &str,
    version: &str,
    rest: &[&str],
) -> Result<Target, Failure> {
    let (namespace, rest) = match rest {
        // A namespace's own parts are not kinds.
        ["namespaces", name, part @ ("status" | "scale" | "finalize")] => {
            ("", vec!["namespaces", *name, *part])
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest.to_vec()),
        rest => ("", rest.to_vec()),
    };
    let (plural, name, part) = match rest.as_slice() {
        [plural] => (*plural, None, None),
        [plural, name] => (*plural, Some((*name).to_owned()), None),
        [plural, name, part] => (*plural, Some((*name).to_owned()), Some(*part)),
        _ => return Err(Failure::no_such_path()),
    };
    let resource = catalog
        .find(group, version, plural)
        .ok_or_else(Failure::no_such_path)?;
    let definition = &resource.definition;
    let part = match part {
        None => Part::Whole,
        Some("status") if definition.has_status => Part::Status,
        Some("scale") if definition.scale.is_some() => Part::Scale,
        Some(_) if resource.nature == Nature::Custom => {
            let about = resource.about(name.as_deref().unwrap_or_default());
            return Err(Failure::not_found(about));
        }
        Some(_) => return Err(Failure::no_such_path()),
    };
    let fits = match resource.scope {
        Scope::Cluster => namespace.is_empty(),
        Scope::Namespaced => name.is_none() || !namespace.is_empty(),
    };
    if !fits {
        return Err(Failure::no_such_path());
    }
    Ok(Target::Objects(Objects {
        resource: resource.clone(),
        namespace: namespace.to_owned(),
        name,
        part,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_paths_name_nothing() {
        for part in ["", ".", "..", "%2e%2e", "a%2fb", "%", "%zz", "%00", "%ff"] {
            assert_eq!(decode(part), None, "{part:?}");
        }
        assert_eq!(decode("a%20b").as_deref(), Some("a b"));
    }
}
