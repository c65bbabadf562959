//! Settings that are a list of tables, `[[key]]` in the file: only a file can hold them. Each row keeps its place, so
//! that a mistake names it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{ConfigError, Layers, Setting, Source, parse, quoted, scalar, suggest};

/// One table of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// For example `servers[0]`.
    place: String,
    fields: BTreeMap<String, String>,
    source: Source,
}

impl Row {
    /// A field, if it is there.
    ///
    /// # Errors
    /// When it is not a `T`.
    pub fn optional<T>(&self, field: &str) -> Result<Option<T>, ConfigError>
    where
        T: FromStr<Err: fmt::Display>,
    {
        let key = self.key(field);
        let text = self.fields.get(field);
        text.map(|text| parse(&key, text, &self.source)).transpose()
    }

    /// A field that must be there.
    ///
    /// # Errors
    /// When it is not, or is not a `T`.
    pub fn required<T>(&self, field: &str) -> Result<T, ConfigError>
    where
        T: FromStr<Err: fmt::Display>,
    {
        self.optional(field)?.ok_or_else(|| ConfigError::Missing {
            key: self.key(field),
            from: self.source.clone(),
        })
    }

    /// The path of a field, as messages name it.
    #[must_use]
    pub fn key(&self, field: &str) -> String {
        format!("{}.{field}", self.place)
    }

    fn shown(&self) -> String {
        let fields = self.fields.iter();
        let fields: Vec<_> = fields
            .map(|(name, text)| format!("{name} = {}", quoted(text)))
            .collect();
        format!("{{ {} }}", fields.join(", "))
    }
}

impl Layers {
    /// A list of tables with these fields, each a single value; empty by default.
    ///
    /// # Errors
    /// When it is something else, or a table has another field.
    pub fn tables(
        &mut self,
        key: &'static str,
        fields: &[&'static str],
    ) -> Result<Setting<Vec<Row>>, ConfigError> {
        self.asked.insert(key);
        let found = self
            .file
            .as_ref()
            .and_then(|(path, table)| Some((path, table.get(key)?)));
        let Some((path, value)) = found else {
            let source = Source::Default;
            self.shown
                .push((key, Some("[]".to_owned()), source.clone()));
            return Ok(Setting {
                value: Vec::new(),
                source,
            });
        };
        let wrong = |key: String, expected, found: &toml::Value| ConfigError::WrongType {
            path: path.clone(),
            key,
            expected,
            found: found.type_str(),
        };
        let source = Source::File(path.clone());
        let toml::Value::Array(items) = value else {
            return Err(wrong(key.to_owned(), "a list of tables", value));
        };
        let mut rows = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let place = format!("{key}[{index}]");
            let toml::Value::Table(table) = item else {
                return Err(wrong(place, "a table", item));
            };
            let mut row = Row {
                place,
                fields: BTreeMap::new(),
                source: source.clone(),
            };
            for (name, value) in table {
                if !fields.contains(&name.as_str()) {
                    let suggestion = suggest(name, fields.iter().copied()).map(str::to_owned);
                    return Err(ConfigError::UnknownKey {
                        path: path.clone(),
                        key: row.key(name),
                        suggestion,
                    });
                }
                let text =
                    scalar(value).ok_or_else(|| wrong(row.key(name), "a single value", value))?;
                row.fields.insert(name.clone(), text);
            }
            rows.push(row);
        }
        let shown: Vec<_> = rows.iter().map(Row::shown).collect();
        let shown = format!("[{}]", shown.join(", "));
        self.shown.push((key, Some(shown), source.clone()));
        Ok(Setting {
            value: rows,
            source,
        })
    }
}
