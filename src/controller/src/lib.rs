//! Reconcilers: what makes objects true (control-plane 7). One folder a kind; `plan` is pure; the object source is a `kube::Client`, of an API server or of the local object API.
