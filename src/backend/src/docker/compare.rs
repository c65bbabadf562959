//! What of a live container is not as it was rendered. Pure: a rendering and what the engine says.

use std::collections::BTreeSet;

use bollard::models::{ContainerCreateBody, ContainerInspectResponse, HostConfig, Mount};

/// Which fields are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// All that tell.
    Whole,
    /// Those that an older program rendered in the same way: memory, user, mounts, network (control-plane 3.1).
    Safety,
}

/// Names of the fields that differ, in order.
pub(super) fn tampered(
    wanted: &ContainerCreateBody,
    live: &ContainerInspectResponse,
    depth: Depth,
) -> Vec<String> {
    let empty = HostConfig::default();
    let want = wanted.host_config.as_ref().unwrap_or(&empty);
    let have = live.host_config.as_ref().unwrap_or(&empty);
    let config = live.config.as_ref();
    let mut found = Vec::new();
    let mut differ = |name: &str, same: bool| {
        if !same {
            found.push(name.to_owned());
        }
    };
    // An engine whose kernel counts no swap keeps none or -1.
    let swap_same = match have.memory_swap {
        None | Some(..=0) => true,
        swap => swap == want.memory_swap,
    };
    differ("memory", want.memory == have.memory && swap_same);
    differ(
        "user",
        wanted.user == config.and_then(|config| config.user.clone()),
    );
    differ("mounts", mounts(want) == live_mounts(live));
    differ("network", networks_match(want, live));
    if depth == Depth::Safety {
        return found;
    }
    differ(
        "capabilities",
        set(want.cap_drop.as_ref()) == set(have.cap_drop.as_ref())
            && have.cap_add.as_ref().is_none_or(Vec::is_empty),
    );
    differ("readOnlyRoot", want.readonly_rootfs == have.readonly_rootfs);
    differ(
        "privileges",
        !have.privileged.unwrap_or_default() && privileges_kept(have),
    );
    differ("pidsLimit", want.pids_limit == have.pids_limit);
    differ("restartPolicy", restart_word(want) == restart_word(have));
    differ(
        "command",
        wanted.cmd == config.and_then(|config| config.cmd.clone()),
    );
    differ("image", image_matches(wanted, live));
    differ(
        "cpu",
        want.nano_cpus.unwrap_or_default() == have.nano_cpus.unwrap_or_default(),
    );
    found
}

fn set(list: Option<&Vec<String>>) -> BTreeSet<&str> {
    list.into_iter().flatten().map(String::as_str).collect()
}

/// Some engines write `no-new-privileges:true`, Podman leaves others beside it.
fn privileges_kept(have: &HostConfig) -> bool {
    set(have.security_opt.as_ref())
        .iter()
        .any(|option| matches!(*option, "no-new-privileges" | "no-new-privileges:true"))
}

fn restart_word(host: &HostConfig) -> String {
    let policy = host.restart_policy.as_ref();
    policy
        .and_then(|policy| policy.name)
        .map_or_else(String::new, |name| name.to_string())
}

/// Only an id says which image it is; a name may have moved since.
fn image_matches(wanted: &ContainerCreateBody, live: &ContainerInspectResponse) -> bool {
    match (&wanted.image, &live.image) {
        (Some(wanted), Some(live)) if wanted.starts_with("sha256:") => wanted == live,
        _ => true,
    }
}

/// Target, volume (none for one that goes with the container) and whether it is written to.
type Mounted = BTreeSet<(String, Option<String>, bool)>;

fn mounts(host: &HostConfig) -> Mounted {
    let one = |mount: &Mount| {
        Some((
            mount.target.clone()?,
            mount.source.clone(),
            !mount.read_only.unwrap_or_default(),
        ))
    };
    host.mounts.iter().flatten().filter_map(one).collect()
}

fn live_mounts(live: &ContainerInspectResponse) -> Mounted {
    let asked: BTreeSet<&str> = live
        .host_config
        .iter()
        .filter_map(|host| host.mounts.as_ref())
        .flatten()
        .filter(|mount| mount.source.is_some())
        .filter_map(|mount| mount.target.as_deref())
        .collect();
    live.mounts
        .iter()
        .flatten()
        .filter_map(|mount| {
            let target = mount.destination.clone()?;
            let kind = mount.typ.as_deref();
            if kind == Some("tmpfs") {
                return None;
            }
            let source = if kind == Some("bind") {
                mount.source.clone()
            } else {
                mount.name.clone().filter(|_| asked.contains(&*target))
            };
            Some((target, source, mount.rw.unwrap_or(true)))
        })
        .collect()
}

/// It hangs on the network it was made for and on no other.
fn networks_match(want: &HostConfig, live: &ContainerInspectResponse) -> bool {
    let mode = want.network_mode.as_deref().unwrap_or_default();
    let live_mode = live
        .host_config
        .as_ref()
        .and_then(|host| host.network_mode.as_deref());
    let networks: Vec<&str> = live
        .network_settings
        .iter()
        .filter_map(|settings| settings.networks.as_ref())
        .flat_map(|networks| networks.keys())
        .map(String::as_str)
        .collect();
    live_mode == Some(mode) && networks == [mode]
}
