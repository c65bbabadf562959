//! Rows of patches: what comes out, or the refusal.

use serde_json::{Value, json};

use super::{MAX_OPERATIONS, PatchError, json_patch, merge_patch};

fn object() -> Value {
    json!({"spec": {"a": 1, "list": ["x", "y"], "m~/": {"b": null}, "deep": [{"c": 1}]}})
}

#[test]
fn operations_change_what_they_name() {
    let rows = [
        (
            "add a field",
            json!([{"op": "add", "path": "/spec/b", "value": 2}]),
            "/spec/b",
            json!(2),
        ),
        (
            "add over a field",
            json!([{"op": "add", "path": "/spec/a", "value": 2}]),
            "/spec/a",
            json!(2),
        ),
        (
            "insert an item",
            json!([{"op": "add", "path": "/spec/list/1", "value": "z"}]),
            "/spec/list",
            json!(["x", "z", "y"]),
        ),
        (
            "append an item",
            json!([{"op": "add", "path": "/spec/list/-", "value": "z"}]),
            "/spec/list",
            json!(["x", "y", "z"]),
        ),
        (
            "insert from the end",
            json!([{"op": "add", "path": "/spec/list/-1", "value": "z"}]),
            "/spec/list",
            json!(["x", "y", "z"]),
        ),
        (
            "remove an item",
            json!([{"op": "remove", "path": "/spec/list/0"}]),
            "/spec/list",
            json!(["y"]),
        ),
        (
            "remove the last item",
            json!([{"op": "remove", "path": "/spec/list/-1"}]),
            "/spec/list",
            json!(["x"]),
        ),
        (
            "escaped name",
            json!([{"op": "add", "path": "/spec/m~0~1/b", "value": 1}]),
            "/spec/m~0~1/b",
            json!(1),
        ),
        (
            "through a list",
            json!([{"op": "replace", "path": "/spec/deep/0/c", "value": 3}]),
            "/spec/deep/0/c",
            json!(3),
        ),
        (
            "replace adds",
            json!([{"op": "replace", "path": "/spec/new", "value": 3}]),
            "/spec/new",
            json!(3),
        ),
        (
            "move",
            json!([{"op": "move", "from": "/spec/a", "path": "/spec/c"}]),
            "/spec/c",
            json!(1),
        ),
        (
            "copy",
            json!([{"op": "copy", "from": "/spec/list", "path": "/spec/c"}]),
            "/spec/c",
            json!(["x", "y"]),
        ),
        (
            "copy of nothing",
            json!([{"op": "copy", "from": "/spec/no", "path": "/spec/c"}]),
            "/spec/c",
            json!(null),
        ),
        (
            "test of nothing",
            json!([{"op": "test", "path": "/spec/no", "value": null}]),
            "/spec/a",
            json!(1),
        ),
        (
            "test of a null",
            json!([{"op": "test", "path": "/spec/m~0~1/b", "value": null}]),
            "/spec/a",
            json!(1),
        ),
        (
            "replace all",
            json!([{"op": "replace", "path": "", "value": {"spec": 1}}]),
            "/spec",
            json!(1),
        ),
    ];
    for (name, patch, at, wanted) in rows {
        let patched =
            json_patch(&object(), &patch).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(patched.pointer(at), Some(&wanted), "{name}");
    }
}

#[test]
fn refusals_say_what_the_api_server_says() {
    let rows = [
        (
            json!([{"op": "add", "path": "/no/b", "value": 2}]),
            "add operation does not apply: doc is missing path: \"/no/b\": missing value",
        ),
        (
            json!([{"op": "add", "path": "", "value": 2}]),
            "add operation does not apply: doc is missing path: \"\": missing value",
        ),
        (
            json!([{"op": "add", "path": "/spec/list/9", "value": 2}]),
            "error in add for path: '/spec/list/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            json!([{"op": "add", "path": "/spec/list/q", "value": 2}]),
            "error in add for path: '/spec/list/q': value was not a proper array index: 'q': strconv.Atoi: parsing \"q\": invalid syntax",
        ),
        (
            json!([{"op": "remove", "path": "/spec/no"}]),
            "error in remove for path: '/spec/no': Unable to remove nonexistent key: no: missing value",
        ),
        (
            json!([{"op": "remove", "path": "/spec/a/b/c"}]),
            "remove operation does not apply: doc is missing path: \"/spec/a/b/c\": missing value",
        ),
        (
            json!([{"op": "replace", "path": "/spec/list/2", "value": 1}]),
            "replace operation does not apply: doc is missing key: /spec/list/2: missing value",
        ),
        (
            json!([{"op": "replace", "path": "/no/a", "value": 1}]),
            "replace operation does not apply: doc is missing path: /no/a: missing value",
        ),
        (
            json!([{"op": "move", "from": "/spec/no", "path": "/spec/c"}]),
            "error in move for path: 'no': Unable to remove nonexistent key: no: missing value",
        ),
        (
            json!([{"op": "copy", "from": "/no/a", "path": "/spec/c"}]),
            "copy operation does not apply: doc is missing from path: /no/a: missing value",
        ),
        (
            json!([{"op": "test", "path": "/spec/a", "value": 2}]),
            "testing value /spec/a failed: test failed",
        ),
        (
            json!([{"op": "jump", "path": "/spec/a"}]),
            "Unexpected kind: jump",
        ),
        (json!([{"path": "/spec/a"}]), "Unexpected kind: unknown"),
        (
            json!([{"op": "add"}]),
            "add operation failed to decode path: missing value",
        ),
    ];
    for (patch, wanted) in rows {
        let refused = json_patch(&object(), &patch);
        assert_eq!(
            refused,
            Err(PatchError::DoesNotApply(wanted.into())),
            "{patch}"
        );
    }
}

#[test]
fn what_is_no_patch_is_malformed() {
    for patch in [json!({}), json!("x"), json!([1]), json!(null)] {
        let refused = json_patch(&object(), &patch);
        assert!(
            matches!(refused, Err(PatchError::Malformed(_))),
            "{patch}: {refused:?}"
        );
    }
    assert!(matches!(
        merge_patch(&object(), &json!([])),
        Err(PatchError::Malformed(_))
    ));
}

#[test]
fn the_number_of_operations_is_bounded() {
    let test = json!({"op": "test", "path": "/spec/a", "value": 1});
    let most = Value::Array(vec![test.clone(); MAX_OPERATIONS]);
    assert_eq!(json_patch(&object(), &most), Ok(object()));
    let more = Value::Array(vec![test; MAX_OPERATIONS + 1]);
    let refused = json_patch(&object(), &more);
    assert_eq!(
        refused,
        Err(PatchError::TooManyOperations {
            got: MAX_OPERATIONS + 1
        })
    );
}

#[test]
fn merge_patches_merge_objects_and_replace_the_rest() {
    let rows = [
        ("merge", json!({"spec": {"a": 2}}), "/spec/a", json!(2)),
        (
            "a list is replaced",
            json!({"spec": {"list": ["q"]}}),
            "/spec/list",
            json!(["q"]),
        ),
        (
            "nulls of what is new go",
            json!({"spec": {"n": {"a": null, "b": [{"c": null}]}}}),
            "/spec/n",
            json!({"b": [{}]}),
        ),
        (
            "an object in the place of a scalar",
            json!({"spec": {"a": {"b": null, "c": 1}}}),
            "/spec/a",
            json!({"c": 1}),
        ),
        (
            "a list in the place of an object",
            json!({"spec": {"m~/": [{"c": null}]}}),
            "/spec/m~0~1",
            json!([{"c": null}]),
        ),
    ];
    for (name, patch, at, wanted) in rows {
        let patched = merge_patch(&object(), &patch).expect(name);
        assert_eq!(patched.pointer(at), Some(&wanted), "{name}");
    }
    let removed =
        merge_patch(&object(), &json!({"spec": {"a": null, "no": null}})).expect("patched");
    assert_eq!(removed["spec"].as_object().map(|spec| spec.len()), Some(3));
}
