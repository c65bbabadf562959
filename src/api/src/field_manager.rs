//! Names under which we write fields (control-plane 8.4, 10): one writer, one name, or a later apply drops what another
//! one set.

/// The controllers: status, children, finalizers.
pub const CONTROLLER: &str = "relay-controller";
/// `relayctl apply` and the like.
pub const RELAYCTL: &str = "relayctl";
/// `relayctl rollout`: only `spec.rollout.*`, which Git usually does not name.
pub const RELAYCTL_ROLLOUT: &str = "relayctl-rollout";
/// `relayctl use`, `undo` and `adopt`: a later `apply -f` of an old file is a conflict and not a rollout back.
pub const RELAYCTL_USE: &str = "relayctl-use";

/// Every name of ours.
pub const ALL: &[&str] = &[CONTROLLER, RELAYCTL, RELAYCTL_ROLLOUT, RELAYCTL_USE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit() {
        let unique: std::collections::BTreeSet<_> = ALL.iter().collect();
        assert_eq!(unique.len(), ALL.len());
        // Longest that an API server takes.
        assert!(ALL.iter().all(|name| (1..=128).contains(&name.len())));
    }
}
