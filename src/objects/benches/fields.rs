//! Server-side apply of an object of some 4 KB that one manager owns half of, another the rest.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use objects::fields::{Force, Shape, Writer, apply, record_update};
use serde_json::{Value, json};

const API_VERSION: &str = "relay.dev/v1";

fn shape() -> Shape {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "properties": {"name": text, "model": text, "price": text, "note": text}});
    Shape::of_schema(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "profile": text,
            "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item},
            "labels": {"type": "object", "additionalProperties": text},
        }}}}),
    )
}

fn config(from: usize, profile: &str) -> Value {
    let items: Vec<Value> = (from..from + 16)
        .map(|at| json!({"name": format!("item-{at}"), "model": "provider/model-of-some-length", "price": "0.25", "note": "a note"}))
        .collect();
    json!({"apiVersion": API_VERSION, "kind": "Thing", "metadata": {"name": "n", "namespace": "d"},
        "spec": {"profile": profile, "items": items, "labels": {format!("label-{from}"): "value"}}})
}

fn writer(manager: &'static str) -> Writer<'static> {
    Writer {
        manager,
        subresource: None,
        api_version: API_VERSION,
        time: "2026-01-01T00:00:00Z",
    }
}

fn fields(c: &mut Criterion) {
    let shape = shape();
    let live = apply(&shape, None, &config(0, "a"), &writer("one"), Force::No).expect("applied");
    let live = apply(
        &shape,
        Some(&live),
        &config(16, "a"),
        &writer("two"),
        Force::No,
    )
    .expect("applied");
    let mut spec = live.clone();
    spec["metadata"]["managedFields"].take();
    assert!(
        spec.to_string().len() > 3_000,
        "{} bytes",
        spec.to_string().len()
    );
    let (same, changed) = (config(0, "a"), config(1, "b"));
    c.bench_function("apply 4 KB, nothing changes", |b| {
        b.iter(|| {
            apply(
                &shape,
                Some(black_box(&live)),
                &same,
                &writer("one"),
                Force::No,
            )
        });
    });
    c.bench_function("apply 4 KB, fields come, change and go", |b| {
        b.iter(|| {
            apply(
                &shape,
                Some(black_box(&live)),
                &changed,
                &writer("one"),
                Force::Yes,
            )
        });
    });
    c.bench_function("update 4 KB", |b| {
        b.iter(|| {
            let mut new = live.clone();
            new["spec"]["profile"] = "c".into();
            record_update(&shape, Some(black_box(&live)), &mut new, &writer("three"))
        });
    });
}

criterion_group!(benches, fields);
criterion_main!(benches);
