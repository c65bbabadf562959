use super::*;

fn layers(
    flags: &[(&'static str, &[&str])],
    environment: &[(&str, &str)],
    file: Option<&str>,
) -> Result<Layers, ConfigError> {
    Layers::new(
        flags
            .iter()
            .map(|(key, values)| (*key, values.iter().map(|v| (*v).to_owned()).collect()))
            .collect(),
        "RELAYD_",
        environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        file.map(|text| (Path::new("/etc/relayd.toml"), text)),
    )
}

#[test]
fn the_strongest_layer_wins_and_is_named() {
    let file = Some("port = 1");
    let environment: &[_] = &[("RELAYD_PORT", "2")];
    let flag: &[(&'static str, &[&str])] = &[("port", &["3"])];
    for (name, mut layers, expected, source) in [
        ("default", layers(&[], &[], None), 0, "default"),
        ("file", layers(&[], &[], file), 1, "file /etc/relayd.toml"),
        (
            "environment",
            layers(&[], environment, file),
            2,
            "environment RELAYD_PORT",
        ),
        ("flag", layers(flag, environment, file), 3, "flag --port"),
        (
            "repeated flag",
            layers(&[("port", &["3", "4"])], &[], None),
            4,
            "flag --port",
        ),
        (
            "absent flag",
            layers(&[("port", &[])], environment, None),
            2,
            "environment RELAYD_PORT",
        ),
        (
            "blank variable",
            layers(&[], &[("RELAYD_PORT", " ")], file),
            1,
            "file /etc/relayd.toml",
        ),
    ]
    .map(|(name, layers, expected, source)| (name, layers.unwrap(), expected, source))
    {
        let setting = layers.with_default("port", 0_u16).unwrap();
        assert_eq!(
            (setting.value, setting.source.to_string().as_str()),
            (expected, source),
            "{name}"
        );
    }
}

#[test]
fn a_list_is_taken_whole_from_one_layer() {
    for (name, layers, expected) in [
        ("default", layers(&[], &[], None), vec![]),
        (
            "file",
            layers(&[], &[], Some("port = [1, \"2\"]")),
            vec![1, 2],
        ),
        (
            "environment",
            layers(&[], &[("RELAYD_PORT", "3, 4,")], Some("port = [1]")),
            vec![3, 4],
        ),
        (
            "flag",
            layers(&[("port", &["5", "6"])], &[("RELAYD_PORT", "3")], None),
            vec![5, 6],
        ),
    ] {
        assert_eq!(
            layers.unwrap().list::<u16>("port").unwrap().value,
            expected,
            "{name}"
        );
    }
}

#[test]
fn bad_values_say_where_they_stand() {
    let cases: [(&str, Result<Layers, ConfigError>, &str); 6] = [
        (
            "flag",
            layers(&[("port", &["x"])], &[], None),
            "port = `x` (flag --port): invalid digit found in string",
        ),
        (
            "environment",
            layers(&[], &[("RELAYD_PORT", "99999")], None),
            "port = `99999` (environment RELAYD_PORT): number too large to fit in target type",
        ),
        (
            "file",
            layers(&[], &[], Some("port = \"\"")),
            "port = `` (file /etc/relayd.toml): cannot parse integer from empty string",
        ),
        (
            "type",
            layers(&[], &[], Some("port = [1]")),
            "configuration file /etc/relayd.toml: `port` must be a single value, found array",
        ),
        (
            "syntax",
            layers(&[], &[], Some("a = 1\nport == 1")),
            "configuration file /etc/relayd.toml: line 2: ",
        ),
        (
            "key twice",
            layers(&[], &[], Some("port = 1\n\nport = 2")),
            "configuration file /etc/relayd.toml: line 3: ",
        ),
    ];
    for (name, layers, expected) in cases {
        let error = layers
            .and_then(|mut layers| layers.with_default("port", 0_u16))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(expected), "{name}: {error}");
    }
}

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    let mut layers = layers(&[], &[], Some("prot = 1")).unwrap();
    layers.with_default("port", 0_u16).unwrap();
    assert_eq!(
        layers.finish().unwrap_err().to_string(),
        "configuration file /etc/relayd.toml: unknown key `prot`, did you mean `port`?"
    );
}

#[test]
fn a_mistyped_variable_is_a_warning_and_a_foreign_one_is_nothing() {
    let environment = &[
        ("RELAYD_PROT", "1"),
        ("RELAYD_SERVICE_HOST", "10.0.0.1"),
        ("RELAY_PORT", "1"),
    ];
    let mut layers = layers(&[], environment, None).unwrap();
    layers.with_default("port", 0_u16).unwrap();
    assert_eq!(
        layers.finish().unwrap().warnings,
        ["environment variable RELAYD_PROT is not known, did you mean RELAYD_PORT?"]
    );
}

#[test]
fn the_effective_configuration_is_a_file_with_sources() {
    let mut layers = layers(&[("name", &["a \"b\""])], &[], Some("port = 1")).unwrap();
    layers.optional::<String>("name").unwrap();
    layers.with_default("port", 0_u16).unwrap();
    layers.optional::<String>("extra").unwrap();
    layers.list::<String>("origins").unwrap();
    let shown = layers.finish().unwrap().to_string();
    assert_eq!(
        shown,
        "name = \"a \\\"b\\\"\"  # flag --name\nport = \"1\"  # file /etc/relayd.toml\n# extra is unset\norigins = []  # default\n"
    );
    assert!(shown.parse::<toml::Table>().is_ok());
}

#[test]
fn tables_are_read_row_by_row_and_mistakes_name_the_row() {
    const GOOD: &str =
        "[[servers]]\nurl = \"http://a\"\nweight = 3\n[[servers]]\nurl = \"http://b\"\n";
    let read = |text: &str| {
        let mut layers = layers(&[], &[], Some(text))?;
        let rows = layers.tables("servers", &["url", "weight"])?.value;
        let rows = rows
            .iter()
            .map(|row| Ok((row.required("url")?, row.optional("weight")?)))
            .collect::<Result<Vec<(String, Option<u32>)>, ConfigError>>()?;
        Ok::<_, ConfigError>((rows, layers.finish()?.to_string()))
    };
    let (rows, shown) = read(GOOD).unwrap();
    assert_eq!(
        rows,
        [
            ("http://a".to_owned(), Some(3)),
            ("http://b".to_owned(), None)
        ]
    );
    assert_eq!(
        shown,
        "servers = [{ url = \"http://a\", weight = \"3\" }, { url = \"http://b\" }]  # file /etc/relayd.toml\n"
    );
    assert_eq!(read(&shown).unwrap().0, rows, "what is shown can be read");
    assert_eq!(read("").unwrap().1, "servers = []  # default\n");
    for (name, text, expected) in [
        (
            "a number",
            "servers = 1",
            "configuration file /etc/relayd.toml: `servers` must be a list of tables, found integer",
        ),
        (
            "one table",
            "[servers]\nurl = \"http://a\"",
            "configuration file /etc/relayd.toml: `servers` must be a list of tables, found table",
        ),
        (
            "a list of texts",
            "servers = [\"http://a\"]",
            "configuration file /etc/relayd.toml: `servers[0]` must be a table, found string",
        ),
        (
            "unknown field",
            "[[servers]]\nurl = \"http://a\"\n[[servers]]\nwieght = 1",
            "configuration file /etc/relayd.toml: unknown key `servers[1].wieght`, did you mean `weight`?",
        ),
        (
            "a list in a field",
            "[[servers]]\nurl = [1]",
            "configuration file /etc/relayd.toml: `servers[0].url` must be a single value, found array",
        ),
        (
            "missing field",
            "[[servers]]\nweight = 1",
            "servers[0].url is missing (file /etc/relayd.toml)",
        ),
        (
            "bad value",
            "[[servers]]\nurl = \"http://a\"\nweight = -1",
            "servers[0].weight = `-1` (file /etc/relayd.toml): invalid digit found in string",
        ),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), expected, "{name}");
    }
}
