//! What a CRD document allows: defaults, unknown fields, structural rules and CEL (control-plane 9).
