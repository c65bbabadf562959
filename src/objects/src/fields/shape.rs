//! How the maps and lists of a kind merge: read from its openAPIV3Schema, with the shape of `metadata` that every kind has.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::set::FieldSet;

/// A type by its number in the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeId(usize);

/// Anything, owned as a whole.
pub(super) const UNTYPED: TypeId = TypeId(0);
/// Anything: maps by field, lists as a whole.
pub(super) const DEDUCED: TypeId = TypeId(1);

/// What a scalar may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Number,
    Text,
    Flag,
    Any,
}

/// How the items of a list are told apart.
#[derive(Clone, Debug)]
pub(super) enum Items {
    /// They are not: the list is one value.
    Atomic,
    /// By their value.
    Set,
    /// By these fields, with the default of each.
    Keyed(Vec<(String, Option<Value>)>),
}

#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) items: Items,
    pub(super) element: TypeId,
}

/// Whether a map is one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grain {
    Atomic,
    Granular,
}

#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) grain: Grain,
    pub(super) fields: BTreeMap<Arc<str>, Field>,
    /// The type of all other fields; `None` when there may be none.
    pub(super) others: Option<TypeId>,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) type_: TypeId,
    default: Option<Value>,
}

/// What values a place may hold. More than one of the three only where the schema names no type.
#[derive(Clone, Debug, Default)]
pub(super) struct Type {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<List>,
    pub(super) map: Option<Map>,
}

/// The alternative of a type that applies to a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum View<'a> {
    Map(&'a Map),
    Scalar(Scalar),
    List(&'a List),
    Nothing,
}

/// Whether `/status` is written by itself, so that writes of the main resource never change or own `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusSubresource {
    /// `status` is an ordinary field.
    Absent,
    /// `status` is written through `/status` only.
    Present,
}

/// How lists and maps of one kind merge.
#[derive(Clone, Debug)]
pub struct Shape {
    types: Vec<Type>,
    root: TypeId,
    status: StatusSubresource,
    served: Served,
}

/// What becomes of an entry that was written in an API version which is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// The write fails (custom resources).
    OneVersion,
    /// The entry is dropped (built-in kinds).
    Dropped,
}

impl Shape {
    /// The shape of a custom resource. `status` is taken as a subresource when the schema has it;
    /// [`with_status`](Self::with_status) says otherwise.
    #[must_use]
    pub fn of_schema(open_api_v3: &Value) -> Self {
        let mut shape = Self::empty(Served::OneVersion);
        let root = shape.read_type(open_api_v3, Unknown::Refused);
        let metadata = shape.metadata();
        let text = shape.push(scalar(Scalar::Text));
        if let Some(map) = shape.types[root.0].map.as_mut() {
            let has_status = map.fields.contains_key("status");
            map.fields.insert(
                "apiVersion".into(),
                Field {
                    type_: text,
                    default: None,
                },
            );
            map.fields.insert(
                "kind".into(),
                Field {
                    type_: text,
                    default: None,
                },
            );
            map.fields.insert(
                "metadata".into(),
                Field {
                    type_: metadata,
                    default: None,
                },
            );
            if has_status {
                shape.status = StatusSubresource::Present;
            }
        }
        shape.root = root;
        shape
    }

    /// The shape of a kind without a schema: maps by field, lists as a whole, `metadata` as everywhere.
    #[must_use]
    pub fn untyped() -> Self {
        let mut shape = Self::empty(Served::Dropped);
        let metadata = shape.metadata();
        shape.root = shape.push(Type {
            map: Some(Map {
                grain: Grain::Granular,
                fields: BTreeMap::from([(
                    "metadata".into(),
                    Field {
                        type_: metadata,
                        default: None,
                    },
                )]),
                others: Some(DEDUCED),
            }),
            ..Type::default()
        });
        shape
    }

    /// The same shape, where the field `name` of the object is one value, as `data` of a ControllerRevision is.
    #[must_use]
    pub fn with_whole_field(mut self, name: &str) -> Self {
        let root = self.root;
        if let Some(map) = self.types[root.0].map.as_mut() {
            map.fields.insert(
                name.into(),
                Field {
                    type_: UNTYPED,
                    default: None,
                },
            );
        }
        self
    }

    /// The same shape, with or without `/status`.
    #[must_use]
    pub fn with_status(mut self, status: StatusSubresource) -> Self {
        self.status = status;
        self
    }

    fn empty(served: Served) -> Self {
        let whole = Map {
            grain: Grain::Atomic,
            fields: BTreeMap::new(),
            others: Some(UNTYPED),
        };
        let list = List {
            items: Items::Atomic,
            element: UNTYPED,
        };
        let by_field = Map {
            grain: Grain::Granular,
            fields: BTreeMap::new(),
            others: Some(DEDUCED),
        };
        let any = |map| Type {
            scalar: Some(Scalar::Any),
            list: Some(list.clone()),
            map: Some(map),
        };
        Self {
            types: vec![any(whole), any(by_field)],
            root: DEDUCED,
            status: StatusSubresource::Absent,
            served,
        }
    }

    fn push(&mut self, type_: Type) -> TypeId {
        self.types.push(type_);
        TypeId(self.types.len() - 1)
    }

    pub(super) fn root(&self) -> TypeId {
        self.root
    }

    pub(super) fn served(&self) -> Served {
        self.served
    }

    pub(super) fn get(&self, type_: TypeId) -> &Type {
        &self.types[type_.0]
    }

    /// The alternative for a value: what its JSON type asks for, else the first there is.
    pub(super) fn view(&self, type_: TypeId, value: Option<&Value>) -> View<'_> {
        let found = self.get(type_);
        match (value, found) {
            (Some(Value::Object(_)), Type { map: Some(map), .. }) => View::Map(map),
            (
                Some(Value::Array(_)),
                Type {
                    list: Some(list), ..
                },
            ) => View::List(list),
            (
                Some(Value::Bool(_) | Value::Number(_) | Value::String(_)),
                Type {
                    scalar: Some(scalar),
                    ..
                },
            ) => View::Scalar(*scalar),
            (_, Type { map: Some(map), .. }) => View::Map(map),
            (
                _,
                Type {
                    scalar: Some(scalar),
                    ..
                },
            ) => View::Scalar(*scalar),
            (
                _,
                Type {
                    list: Some(list), ..
                },
            ) => View::List(list),
            _ => View::Nothing,
        }
    }

    /// Whether a value narrows its type down to the same alternative as another value does.
    pub(super) fn same_view(&self, type_: TypeId, a: &Value, b: &Value) -> bool {
        let found = self.get(type_);
        let alternatives = usize::from(found.scalar.is_some())
            + usize::from(found.list.is_some())
            + usize::from(found.map.is_some());
        let kind = |value: &Value| match value {
            Value::Object(_) if found.map.is_some() => 1,
            Value::Array(_) if found.list.is_some() => 2,
            Value::Bool(_) | Value::Number(_) | Value::String(_) if found.scalar.is_some() => 3,
            _ => 0,
        };
        alternatives < 2 || kind(a) == kind(b)
    }

    /// What a write through this subresource neither changes nor owns.
    pub(super) fn reset(&self, subresource: Option<&str>) -> FieldSet {
        let field = |name| FieldSet::of_paths([[super::PathElement::field(name)]]);
        match (self.status, subresource) {
            (StatusSubresource::Present, None) => field("status"),
            (StatusSubresource::Present, Some("status")) => field("spec"),
            _ => FieldSet::default(),
        }
    }
}

impl Map {
    /// The type of a field.
    pub(super) fn field(&self, name: &str) -> Option<TypeId> {
        self.fields
            .get(name)
            .map(|field| field.type_)
            .or(self.others)
    }

    /// The name and type of a field that the schema names.
    pub(super) fn named(&self, name: &str) -> Option<(&Arc<str>, TypeId)> {
        let (shared, field) = self.fields.get_key_value(name)?;
        Some((shared, field.type_))
    }

    /// The element of a field, sharing the schema's text where there is one.
    pub(super) fn element(&self, name: &str) -> super::PathElement {
        match self.fields.get_key_value(name) {
            Some((shared, _)) => super::PathElement::Field(Arc::clone(shared)),
            None => super::PathElement::field(name),
        }
    }
}

/// What a map without additionalProperties does with fields that it does not name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Refused,
    Preserved,
}

fn scalar(scalar: Scalar) -> Type {
    Type {
        scalar: Some(scalar),
        ..Type::default()
    }
}

impl Shape {
    fn read_type(&mut self, schema: &Value, unknown: Unknown) -> TypeId {
        let unknown = match schema["x-kubernetes-preserve-unknown-fields"] {
            Value::Bool(true) => Unknown::Preserved,
            _ => unknown,
        };
        let type_ = match schema["type"].as_str() {
            Some("object") => Type {
                map: Some(self.read_map(schema, unknown)),
                ..Type::default()
            },
            Some("array") => Type {
                list: Some(self.read_list(schema, unknown)),
                ..Type::default()
            },
            Some("integer" | "number") => scalar(Scalar::Number),
            Some("boolean") => scalar(Scalar::Flag),
            Some("string") => scalar(match schema["format"].as_str() {
                None | Some("" | "byte") => Scalar::Text,
                Some(_) => Scalar::Any,
            }),
            _ => Type {
                scalar: Some(Scalar::Any),
                list: Some(self.read_list(schema, unknown)),
                map: Some(self.read_map(schema, unknown)),
            },
        };
        self.push(type_)
    }

    fn read_map(&mut self, schema: &Value, unknown: Unknown) -> Map {
        let mut fields = BTreeMap::new();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let type_ = self.read_type(member, unknown);
            let default = member.get("default").cloned();
            fields.insert(Arc::from(name.as_str()), Field { type_, default });
        }
        let others = match &schema["additionalProperties"] {
            Value::Null if unknown == Unknown::Preserved || fields.is_empty() => Some(DEDUCED),
            Value::Null | Value::Bool(false) => None,
            Value::Bool(true) => Some(DEDUCED),
            element => Some(self.read_type(element, unknown)),
        };
        let grain = match schema["x-kubernetes-map-type"].as_str() {
            Some("atomic") => Grain::Atomic,
            _ => Grain::Granular,
        };
        Map {
            grain,
            fields,
            others,
        }
    }

    fn read_list(&mut self, schema: &Value, unknown: Unknown) -> List {
        let element = match &schema["items"] {
            Value::Null => UNTYPED,
            items => self.read_type(items, unknown),
        };
        let items = match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => Items::Set,
            Some("map") => Items::Keyed(self.read_keys(schema, element)),
            _ => Items::Atomic,
        };
        List { items, element }
    }

    fn read_keys(&self, schema: &Value, element: TypeId) -> Vec<(String, Option<Value>)> {
        let fields = self.get(element).map.as_ref().map(|map| &map.fields);
        let names = schema["x-kubernetes-list-map-keys"]
            .as_array()
            .into_iter()
            .flatten();
        names
            .filter_map(Value::as_str)
            .map(|name| {
                let field = fields.and_then(|fields| fields.get(name));
                (
                    name.to_owned(),
                    field.and_then(|field| field.default.clone()),
                )
            })
            .collect()
    }

    /// The shape of ObjectMeta.
    fn metadata(&mut self) -> TypeId {
        let text = self.push(scalar(Scalar::Text));
        let number = self.push(scalar(Scalar::Number));
        let any = self.push(scalar(Scalar::Any));
        let texts = self.push(Type {
            map: Some(Map {
                grain: Grain::Granular,
                fields: BTreeMap::new(),
                others: Some(text),
            }),
            ..Type::default()
        });
        let owner = self.push(Type {
            map: Some(Map {
                grain: Grain::Atomic,
                fields: BTreeMap::new(),
                others: Some(UNTYPED),
            }),
            ..Type::default()
        });
        let list = |items, element| Type {
            list: Some(List { items, element }),
            ..Type::default()
        };
        let finalizers = self.push(list(Items::Set, text));
        let owners = self.push(list(Items::Keyed(vec![("uid".into(), None)]), owner));
        let managed = self.push(list(Items::Atomic, UNTYPED));
        let fields = [
            ("annotations", texts),
            ("creationTimestamp", any),
            ("deletionGracePeriodSeconds", number),
            ("deletionTimestamp", any),
            ("finalizers", finalizers),
            ("generateName", text),
            ("generation", number),
            ("labels", texts),
            ("managedFields", managed),
            ("name", text),
            ("namespace", text),
            ("ownerReferences", owners),
            ("resourceVersion", text),
            ("selfLink", text),
            ("uid", text),
        ];
        let fields = fields
            .map(|(name, type_)| {
                (
                    Arc::from(name),
                    Field {
                        type_,
                        default: None,
                    },
                )
            })
            .into();
        self.push(Type {
            map: Some(Map {
                grain: Grain::Granular,
                fields,
                others: None,
            }),
            ..Type::default()
        })
    }
}
