//! Bars of the schema: a whole LayaServer of 2 KB is validated in ≤ 1 ms, the five kinds compile in ≤ 50 ms.

use criterion::{Criterion, criterion_group, criterion_main};
use objects::schema::Definition;
use serde_json::Value;

fn documents() -> Vec<Value> {
    let read = |(kind, text): &(&str, &str)| api::document::read_yaml(text).unwrap_or_else(|error| panic!("{kind}: {error}"));
    api::crds::DOCUMENTS.iter().map(read).collect()
}

fn schema(criterion: &mut Criterion) {
    let documents = documents();
    criterion.bench_function("compile the five kinds", |bencher| {
        bencher.iter(|| documents.iter().map(|crd| Definition::compile(crd).expect("our own CRD")).count());
    });
    let servers = documents.iter().find(|crd| crd["spec"]["names"]["kind"] == "LayaServer").expect("a kind of ours");
    let servers = Definition::compile(servers).expect("our own CRD");
    let bases = include_str!("../tests/golden/schema/layaservers.bases.json");
    let bases: Value = serde_json::from_str(bases).expect("a golden file");
    let mut server = bases["canary"].clone();
    server.as_object_mut().expect("an object").remove("status");
    servers.default(&mut server);
    criterion.bench_function("validate a LayaServer", |bencher| bencher.iter(|| servers.validate(&server, None)));
    let mut changed = server.clone();
    changed["spec"]["replicas"] = Value::from(3);
    criterion.bench_function("validate its update", |bencher| bencher.iter(|| servers.validate(&changed, Some(&server))));
    criterion.bench_function("default and look for unknown fields", |bencher| {
        bencher.iter(|| {
            let mut object = bases["plain"].clone();
            let unknown = servers.unknown_fields(&object);
            servers.default(&mut object);
            (unknown, object)
        });
    });
}

criterion_group!(benches, schema);
criterion_main!(benches);
