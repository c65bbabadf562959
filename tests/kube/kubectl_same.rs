//! A real kubectl prints the same and ends the same on a laptop as on a cluster. LayaServers and LayaModels are used, which
//! nobody reconciles here, so that both servers hold what was said and nothing else.

use crate::cluster::{kubeconfig, namespace, real};
use crate::laptop::Laptop;
use crate::remote::Remote;
use crate::talk::{Side, Talk};

const SERVER: &str = "apiVersion: relay.dev/v1alpha1
kind: LayaServer
metadata: {name: main, labels: {team: a}}
spec: {modelRef: {name: v1}}
";

const MODEL: &str = "apiVersion: relay.dev/v1alpha1
kind: LayaModel
metadata: {name: v1}
spec: {source: {trainingRun: {name: week-48, uid: u}}}
";

/// A conversation in a namespace of its own on both.
fn both(what: &str, conversation: impl FnOnce(&mut Talk<'_>)) {
    let laptop = Laptop::without_a_controller();
    let cluster = Side::new(kubeconfig());
    let name = format!("kubectl-{what}-{}", std::process::id());
    namespace(&real(), &name);
    // `kubectl create namespace` speaks protobuf, which only clusters do.
    let local = Remote::of_kubeconfig("relayd local", &laptop.kubeconfig());
    namespace(&local, &name);
    let mut talk = Talk::new(&cluster, &laptop.side, &name);
    conversation(&mut talk);
    talk.end();
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn get_prints_the_same_in_every_format() {
    both("get", |talk| {
        let server = talk.file("server.yaml", SERVER);
        let model = talk.file("model.yaml", MODEL);
        talk.say("get layaservers", 0);
        talk.say("get ls main", 1);
        talk.say(&format!("create -f {server} -f {model}"), 0);
        talk.say("get ls", 0);
        talk.say("get layaserver main -o wide", 0);
        talk.say("get layaservers.relay.dev -o name", 0);
        talk.say("get ls main -o json", 0);
        talk.say("get ls main -o jsonpath={.spec.replicas}", 0);
        talk.say(
            "get ls -o custom-columns=N:.metadata.name,R:.spec.replicas",
            0,
        );
        talk.say("get ls --show-labels", 0);
        talk.say("get ls -l team=a", 0);
        talk.say("get ls -l team=b", 0);
        talk.say("get ls -l team!=a,other", 0);
        talk.say("get ls --field-selector metadata.name=main", 0);
        talk.say("get ls,lm", 0);
        talk.say("get relay", 0);
        talk.say("get rp,trun,eg", 0);
        talk.say("get ls --chunk-size=1", 0);
        talk.say("get nothing", 1);
        talk.say("get ls main --show-managed-fields -o json", 0);
        talk.say(
            "get ls main --output-watch-events --watch --request-timeout=1s --watch-only",
            0,
        );
    });
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn create_and_replace_and_delete_end_the_same() {
    both("create", |talk| {
        let server = talk.file("server.yaml", SERVER);
        let bad = talk.file(
            "bad.yaml",
            &SERVER.replace("spec: {", "spec: {replicas: 99, "),
        );
        let unknown = talk.file(
            "unknown.yaml",
            &SERVER.replace("spec: {", "spec: {bogus: 1, "),
        );
        let named = talk.file("named.yaml", &SERVER.replace("name: main", "name: Main"));
        let scaled = talk.file(
            "scaled.yaml",
            &SERVER.replace("spec: {", "spec: {replicas: 3, "),
        );
        talk.say(&format!("create -f {bad}"), 1);
        talk.say(&format!("create -f {unknown}"), 1);
        talk.say(&format!("create -f {named}"), 1);
        talk.say(&format!("create -f {server} --dry-run=server"), 0);
        talk.say("get ls", 0);
        talk.say(&format!("create -f {server}"), 0);
        talk.say(&format!("create -f {server}"), 1);
        talk.say(&format!("replace -f {scaled}"), 0);
        talk.say(&format!("replace -f {bad}"), 1);
        talk.say("get ls main -o jsonpath={.spec.replicas}", 0);
        talk.say(&format!("delete -f {server} --dry-run=server"), 0);
        talk.say("delete ls main", 0);
        talk.say("delete ls main", 1);
        talk.say("delete ls main --ignore-not-found", 0);
        talk.say("delete ls --all", 0);
    });
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn apply_by_the_client_and_by_the_server() {
    both("apply", |talk| {
        let server = talk.file("server.yaml", SERVER);
        let scaled = talk.file(
            "scaled.yaml",
            &SERVER.replace("spec: {", "spec: {replicas: 3, "),
        );
        let bad = talk.file(
            "bad.yaml",
            &SERVER.replace("spec: {", "spec: {device: Tpu, "),
        );
        talk.say(&format!("diff -f {server}"), 1);
        talk.say(&format!("apply -f {scaled}"), 0);
        talk.say(&format!("apply -f {scaled}"), 0);
        talk.say(&format!("apply -f {server} --dry-run=server"), 0);
        talk.say(&format!("apply -f {server}"), 0);
        talk.say("get ls main -o json", 0);
        talk.say(&format!("apply -f {bad}"), 1);
        talk.say(&format!("diff -f {server}"), 0);
        talk.say(&format!("apply -f {scaled} --server-side"), 1);
        talk.say(&format!("apply -f {scaled} --server-side"), 1);
        talk.say("get ls main --show-managed-fields -o json", 0);
        talk.say(&format!("apply -f {server} --server-side"), 0);
        talk.say("get ls main --show-managed-fields -o json", 0);
        talk.say(
            "patch ls main --type=merge -p {\"spec\":{\"replicas\":5}}",
            0,
        );
        talk.say(&format!("apply -f {scaled} --server-side"), 1);
        talk.say(
            &format!("apply -f {scaled} --server-side --force-conflicts"),
            0,
        );
        talk.say(
            &format!("apply -f {scaled} --server-side --field-manager=other --dry-run=server"),
            0,
        );
        talk.say(&format!("apply -f {bad} --server-side"), 1);
        talk.say("get ls main --show-managed-fields -o json", 0);
        talk.say(&format!("apply view-last-applied -f {server} -o json"), 0);
    });
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn edit_changes_what_an_editor_changed() {
    both("edit", |talk| {
        let server = talk.file("server.yaml", SERVER);
        let three = talk.editor("three", "s/replicas: 1/replicas: 3/");
        let bad = talk.editor("bad", "s/replicas: 3/replicas: 99/");
        let nothing = talk.editor("nothing", "");
        talk.say(&format!("create -f {server}"), 0);
        talk.say_with("edit ls main", 0, &[("KUBE_EDITOR", &three)]);
        talk.say("get ls main -o jsonpath={.spec.replicas}", 0);
        talk.say_with("edit ls main", 0, &[("KUBE_EDITOR", &nothing)]);
        talk.say_with("edit ls main --save-config", 1, &[("KUBE_EDITOR", &bad)]);
        talk.say("get ls main -o jsonpath={.spec.replicas}", 0);
        talk.say_with("edit ls gone", 1, &[("KUBE_EDITOR", &three)]);
    });
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn patch_scale_label_and_annotate() {
    both("patch", |talk| {
        let server = talk.file("server.yaml", SERVER);
        talk.say(&format!("create -f {server}"), 0);
        talk.say(
            "patch ls main --type=merge -p {\"spec\":{\"replicas\":2}}",
            0,
        );
        talk.say(
            "patch ls main --type=merge -p {\"spec\":{\"replicas\":2}}",
            0,
        );
        talk.say(
            "patch ls main --type=merge -p {\"spec\":{\"replicas\":-2}}",
            1,
        );
        talk.say("patch ls main -p {\"spec\":{\"replicas\":2}}", 1);
        talk.say("patch ls main --type=json -p [{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":4}]", 0);
        talk.say("patch ls main --type=json -p [{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":9}]", 1);
        talk.say("patch ls main --subresource=status --type=merge -p {\"status\":{\"replicas\":4,\"phase\":\"Ready\"}}", 0);
        talk.say(
            "patch ls main --type=merge -p {\"spec\":{\"replicas\":5}} --dry-run=server -o json",
            0,
        );
        talk.say("get ls main --subresource=status -o json", 0);
        talk.say("scale ls main --replicas=6", 0);
        talk.say("scale ls main --replicas=65", 1);
        talk.say("scale ls main --replicas=7 --current-replicas=1", 1);
        talk.say("scale ls main --replicas=7 --current-replicas=6", 0);
        talk.say("get ls main --subresource=scale -o json", 0);
        talk.say("label ls main a=b", 0);
        talk.say("label ls main a=c", 1);
        talk.say("label ls main a=c --overwrite", 0);
        talk.say("label ls main a-", 0);
        talk.say("annotate ls main relay.dev/note=x", 0);
        talk.say("get ls main --show-managed-fields -o json", 0);
    });
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn explain_and_api_resources_say_the_same_of_our_kinds() {
    both("explain", |talk| {
        talk.say("explain ls.spec.rollout", 0);
        talk.say("explain ls.spec.rollout.canary.steps.weight", 0);
        talk.say("explain rp.spec --recursive", 0);
        talk.say("explain lm.status.conditions", 0);
        talk.say("explain ls.spec.nothing", 1);
        talk.say("api-resources --api-group=relay.dev", 0);
    });
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn wait_and_delete_with_finalizers() {
    both("wait", |talk| {
        let model = talk.file(
            "model.yaml",
            &MODEL.replace(
                "{name: v1}",
                "{name: v1, finalizers: [relay.dev/model-in-use]}",
            ),
        );
        talk.say(&format!("create -f {model}"), 0);
        talk.say(
            "wait lm/v1 --for=jsonpath={.spec.suspend}=false --timeout=10s",
            0,
        );
        // Longer than a second: of a watch that ended before, kubectl warns or not, as it happens.
        talk.say("wait lm/v1 --for=condition=Ready --timeout=2s", 1);
        talk.say("patch lm v1 --subresource=status --type=merge -p {\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Reconciled\",\"message\":\"\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"observedGeneration\":1}]}}", 0);
        talk.say("wait lm/v1 --for=condition=Ready --timeout=10s", 0);
        talk.say("get lm", 0);
        talk.say("delete lm v1 --wait=false", 0);
        talk.say("wait lm/v1 --for=delete --timeout=2s", 1);
        talk.say("get lm v1 -o json", 0);
        talk.say(
            "patch lm v1 --type=merge -p {\"metadata\":{\"finalizers\":null}}",
            0,
        );
        talk.say("wait lm/v1 --for=delete --timeout=10s", 0);
        talk.say("get lm", 0);
    });
}

#[test]
#[ignore = "needs a kube-apiserver"]
fn describe_tells_the_object_and_its_events() {
    both("describe", |talk| {
        let server = talk.file("server.yaml", SERVER);
        talk.say(&format!("create -f {server}"), 0);
        talk.say("describe ls main", 0);
        talk.say("describe ls", 0);
        talk.say("describe ls gone", 1);
    });
}
