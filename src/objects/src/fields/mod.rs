//! Who owns which field: `metadata.managedFields`, and server-side apply (control-plane 9).
