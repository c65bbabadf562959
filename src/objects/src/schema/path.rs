//! Where in an object we are. A chain on the stack: nothing is allocated until something is wrong.

/// A path from the root of an object (or, for the status alone, of its status).
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    /// A field that the schema names.
    Field(&'a str),
    /// A key of a map.
    Entry(&'a str),
    /// An item of a list.
    Item(usize),
}

impl<'a> Path<'a> {
    /// The object itself.
    pub(super) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Field(name) }
    }

    pub(super) fn entry(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Entry(key) }
    }

    pub(super) fn item(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Item(index) }
    }

    pub(super) const fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    /// As kube-openapi writes it: `spec.labels.key`. Below the root a key of a map begins with a dot, as there.
    pub(super) fn dotted(&self) -> String {
        let mut text = self.parent.map(Path::dotted).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) | Step::Entry(name) => {
                text.push('.');
                text.push_str(name);
            }
            Step::Item(index) => text.push_str(&format!("[{index}]")),
        }
        text
    }

    /// As `field.Path` writes it: `spec.labels[key]`. The root is empty.
    pub(super) fn bracketed(&self) -> String {
        let mut text = self.parent.map(Path::bracketed).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Entry(key) => text.push_str(&format!("[{key}]")),
            Step::Item(index) => text.push_str(&format!("[{index}]")),
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_path() {
        let spec = Path::ROOT.field("spec");
        let labels = spec.field("labels");
        let key = labels.entry("a/b");
        let item = key.item(2);
        let deep = item.field("name");
        assert_eq!(deep.dotted(), "spec.labels.a/b[2].name");
        assert_eq!(deep.bracketed(), "spec.labels[a/b][2].name");
        assert_eq!(Path::ROOT.entry("k").dotted(), ".k");
        assert_eq!(Path::ROOT.dotted(), "");
    }
}
