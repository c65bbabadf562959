"""The histories of field ownership that fields.py records. Each is a name and its steps; each step one request."""


def apply(manager, spec=None, force=False, meta=None, status=None, sub=None, **rest):
    body = {"metadata": dict(meta or {})}
    if spec is not None:
        body["spec"] = spec
    if status is not None:
        body["status"] = status
    body.update(rest)
    return {"verb": "apply", "manager": manager, "force": force, "sub": sub, "body": body}


def create(manager, spec=None, meta=None, **rest):
    body = {"metadata": dict(meta or {}), "spec": spec if spec is not None else {}}
    body.update(rest)
    return {"verb": "create", "manager": manager, "sub": None, "force": False, "body": body}


def merge(manager, patch, sub=None):
    return {"verb": "merge", "manager": manager, "sub": sub, "force": False, "body": patch}


def jpatch(manager, operations, sub=None):
    return {"verb": "json", "manager": manager, "sub": sub, "force": False, "body": operations}


def put(manager, edit, sub=None):
    """`edit` changes the live object, which is then sent back."""
    return {"verb": "update", "manager": manager, "sub": sub, "force": False, "edit": edit}


def setter(path, value):
    def edit(live):
        place = live
        for step in path[:-1]:
            place = place.setdefault(step, {})
        place[path[-1]] = value
    return edit


def dropper(*path):
    def edit(live):
        place = live
        for step in path[:-1]:
            place = place.get(step, {})
        place.pop(path[-1], None)
    return edit


def both(*edits):
    def edit(live):
        for one in edits:
            one(live)
    return edit


def item(name, **fields):
    return {"name": name, **fields}


CLEAR = setter(["metadata", "managedFields"], [{}])
FULL = {"a": "1", "b": "1", "nested": {"x": "1", "deep": {"z": "1"}}, "tags": ["p", "q"], "plain": ["1", "2"],
        "items": [item("one", value="1"), item("two", value="2", tags=["t"])], "labels": {"k": "v"}}
LAST = "kubectl.kubernetes.io/last-applied-configuration"


def entry(manager, operation, fields, **more):
    return {"manager": manager, "operation": operation, "apiVersion": "golden.relay.dev/v1", "fieldsType": "FieldsV1",
            "fieldsV1": fields, **more}


def last_applied(spec):
    import json
    return json.dumps({"apiVersion": "golden.relay.dev/v1", "kind": "Shape",
                       "metadata": {"annotations": {}, "name": "NAME", "namespace": "NS"}, "spec": spec},
                      separators=(",", ":")) + "\n"


HISTORIES = {
    # creating
    "create-by-update": [create("m1", FULL)],
    "create-by-apply": [apply("m1", FULL)],
    "create-empty-spec": [create("m1", {}), apply("m2", {})],
    "create-empty-containers": [create("m1", {"labels": {}, "tags": [], "items": [], "plain": [], "nested": {}, "whole": {}, "free": {}})],
    "apply-empty-containers": [apply("m1", {"labels": {}, "tags": [], "items": [], "plain": [], "nested": {}, "whole": {}, "free": {}}),
                               apply("m1", {"labels": {"k": "v"}, "tags": ["x"], "nested": {"x": "1"}}), apply("m1", {"labels": {}, "tags": [], "nested": {}})],
    "create-drops-status": [create("m1", {"a": "1"}, status={"phase": "x"}), apply("m1", {"a": "1"}, status={"phase": "y"})],
    "create-metadata": [create("m1", {"a": "1"}, meta={"labels": {"l": "1"}, "annotations": {"n": "1"}, "finalizers": ["x.dev/f", "a.dev/g"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "cm", "uid": "00000000-0000-4000-8000-000000000001"}]}),
        apply("m2", meta={"labels": {"l": "1", "m": "2"}, "finalizers": ["x.dev/f", "b.dev/h"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "cn", "uid": "00000000-0000-4000-8000-000000000002"}]}),
        apply("m2", meta={"labels": {"m": "3"}})],
    "apply-metadata-removal": [apply("m1", meta={"labels": {"l": "1", "k": "1"}, "annotations": {"n": "1"}}), apply("m1", {"a": "1"}, meta={"labels": {"l": "1"}}), apply("m1")],
    # one applier
    "apply-twice": [apply("m1", FULL), apply("m1", FULL)],
    "apply-change": [apply("m1", FULL), apply("m1", {**FULL, "a": "2"})],
    "apply-remove-scalar": [apply("m1", {"a": "1", "b": "1"}), apply("m1", {"a": "1"})],
    "apply-remove-nested": [apply("m1", {"a": "1", "nested": {"x": "1", "y": "1", "deep": {"z": "1"}}}), apply("m1", {"a": "1", "nested": {"x": "1"}}), apply("m1", {"a": "1"})],
    "apply-remove-all": [apply("m1", FULL), apply("m1", {})],
    "apply-remove-spec": [apply("m1", FULL), apply("m1")],
    "apply-default-comes-back": [apply("m1", {"mode": "Manual", "limits": {"low": 5, "high": 9}}), apply("m1", {"a": "1"}), apply("m1", {"mode": "Auto"}), apply("m1", {})],
    "apply-null": [apply("m1", {"a": "1", "maybe": None}), apply("m1", {"a": None}), apply("m1", {"maybe": "x"})],
    "apply-null-container": [apply("m1", {"labels": None, "items": None, "a": "1"}), apply("m1", {"labels": {"k": "v"}, "a": "1"})],
    "apply-number-and-flag": [apply("m1", {"n": 3, "flag": True}), apply("m1", {"n": 4, "flag": False}), apply("m1", {"n": 4})],
    "apply-date": [apply("m1", {"when": "2026-01-01T00:00:00Z"}), apply("m1", {"when": "2026-01-02T00:00:00Z"})],
    # list maps
    "listmap-add-remove": [apply("m1", {"items": [item("one", value="1")]}), apply("m1", {"items": [item("one", value="1"), item("two")]}), apply("m1", {"items": [item("two")]})],
    "listmap-order-config-wins": [apply("m1", {"items": [item("a"), item("b"), item("c")]}), apply("m1", {"items": [item("c"), item("a"), item("b")]})],
    "listmap-order-two": [apply("m1", {"items": [item("a"), item("b"), item("c")]}), apply("m2", {"items": [item("x"), item("c"), item("y"), item("a")]}), apply("m3", {"items": [item("z")]}), apply("m2", {"items": [item("a"), item("y")]})],
    "listmap-order-shared": [apply("m1", {"items": [item("a"), item("b"), item("c"), item("d")]}), apply("m2", {"items": [item("d"), item("n"), item("b"), item("o")]}), apply("m1", {"items": [item("b"), item("d")]})],
    "listmap-two-owners-one-item": [apply("m1", {"items": [item("one", value="1")]}), apply("m2", {"items": [item("one", other="2")]}), apply("m1", {"items": []}), apply("m2", {"items": []})],
    "listmap-nested": [apply("m1", {"items": [item("one", env=[{"key": "k1", "value": "1"}], tags=["a"])]}), apply("m2", {"items": [item("one", env=[{"key": "k2", "value": "2"}], tags=["b"])]}), apply("m1", {"items": [item("one", tags=["a"])]}), apply("m2", {"items": [item("one")]})],
    "listmap-key-default": [apply("m1", {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP", "name": "u"}]}), apply("m2", {"ports": [{"port": 80, "protocol": "TCP", "name": "t"}]}), apply("m1", {"ports": [{"port": 80, "protocol": "UDP"}]}), apply("m1", {"ports": [{"port": 443}]})],
    "listmap-duplicate-key": [apply("m1", {"a": "1"}), apply("m1", {"items": [item("one"), item("one")]})],
    "listmap-duplicate-default-key": [apply("m1", {"a": "1"}), apply("m1", {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]})],
    "listmap-missing-key": [apply("m1", {"a": "1"}), apply("m1", {"items": [{"value": "1"}]})],
    "listmap-null-item": [apply("m1", {"a": "1"}), apply("m1", {"items": [None]})],
    "listmap-scalar-item": [apply("m1", {"a": "1"}), apply("m1", {"items": ["x"]})],
    "listmap-update-item": [create("m1", {"items": [item("one", value="1"), item("two", value="2")]}), merge("m2", {"spec": {"items": [item("one", value="9"), item("three")]}}), apply("m3", {"items": [item("three", value="3")]})],
    # sets and atomics
    "set-add-remove": [apply("m1", {"tags": ["a", "b"]}), apply("m2", {"tags": ["b", "c"]}), apply("m1", {"tags": ["a"]}), apply("m2", {"tags": []})],
    "set-order": [apply("m1", {"tags": ["a", "b", "c"]}), apply("m2", {"tags": ["c", "z", "a"]}), apply("m1", {"tags": ["c", "b", "a"]})],
    "set-numbers": [apply("m1", {"numbers": [10, 9, 1]}), apply("m2", {"numbers": [9, 2]}), apply("m1", {"numbers": [1]})],
    "set-duplicate": [apply("m1", {"a": "1"}), apply("m1", {"tags": ["a", "a"]})],
    "set-null": [apply("m1", {"a": "1"}), apply("m1", {"tags": [None]})],
    "atomic-list": [apply("m1", {"plain": ["a"]}), apply("m2", {"plain": ["b"]}), apply("m2", {"plain": ["b"]}, force=True), apply("m1", {})],
    "atomic-list-shared": [apply("m1", {"plain": ["a"]}), apply("m2", {"plain": ["a"]}), apply("m1", {}), apply("m2", {})],
    "atomic-rows": [apply("m1", {"rows": [{"k": "1", "v": "1"}]}), merge("m2", {"spec": {"rows": [{"k": "1", "v": "2"}]}}), apply("m1", {"rows": [{"k": "1", "v": "1"}]})],
    "atomic-map": [apply("m1", {"whole": {"x": "1"}, "wholeMap": {"p": "1"}}), apply("m2", {"whole": {"y": "1"}}), apply("m2", {"whole": {"y": "1"}, "wholeMap": {"q": "1"}}, force=True), apply("m1", {"a": "1"})],
    "map-of-objects": [apply("m1", {"groups": {"g": {"x": "1"}, "h": {}}}), apply("m2", {"groups": {"g": {"y": "1"}}}), apply("m1", {"groups": {"h": {"x": "1"}}}), apply("m2", {})],
    "map-keys": [apply("m1", {"labels": {"a": "1", "b": "1"}}), apply("m2", {"labels": {"b": "1", "c": "1"}}), apply("m1", {"labels": {}}), apply("m2", {})],
    "free-form": [apply("m1", {"free": {"a": {"b": {"c": 1}}, "l": [1, {"x": 1}]}}), apply("m2", {"free": {"a": {"d": 1.5}}}), apply("m1", {"free": {"a": "scalar"}}, force=True), apply("m2", {"free": {"a": {"d": 2}}}, force=True), apply("m1", {})],
    # conflicts and sharing
    "conflict-one": [apply("m1", {"a": "1"}), apply("m2", {"a": "2"})],
    "conflict-many": [apply("m1", {"a": "1", "b": "1", "nested": {"x": "1"}}), merge("m3", {"spec": {"c": "1", "tags": ["x"]}}), apply("m2", {"a": "2", "b": "2", "c": "2", "nested": {"x": "2"}, "items": [item("n")]})],
    "conflict-with-update": [create("m1", {"a": "1"}), apply("m2", {"a": "2"}), apply("m2", {"a": "2"}, force=True), merge("m1", {"spec": {"a": "3"}}), apply("m2", {"a": "2"})],
    "conflict-in-listmap": [apply("m1", {"items": [item("one", value="1")], "ports": [{"port": 80, "name": "x"}]}), apply("m2", {"items": [item("one", value="2")], "ports": [{"port": 80, "name": "y"}]}), apply("m2", {"items": [item("one", value="2")]}, force=True), apply("m1", {"items": [item("one")]})],
    "conflict-quoted-manager": [apply('m "1"', {"a": "1"}), apply("m2", {"a": "2"})],
    "conflict-three-managers": [apply("m1", {"a": "1"}), apply("m2", {"a": "1"}), apply("m3", {"a": "3"}), apply("m3", {"a": "3"}, force=True), apply("m1", {"a": "1"})],
    "shared-then-one-leaves": [apply("m1", {"a": "1", "b": "1"}), apply("m2", {"a": "1"}), apply("m1", {"b": "1"}), apply("m2", {})],
    "shared-then-both-change": [apply("m1", {"a": "1"}), apply("m2", {"a": "1"}), apply("m1", {"a": "2"}), apply("m1", {"a": "2"}, force=True)],
    "force-moves": [apply("m1", {"a": "1", "b": "1"}), apply("m2", {"a": "2"}, force=True), apply("m1", {"b": "2"}), apply("m1", {"a": "1", "b": "2"})],
    "force-empties-owner": [apply("m1", {"a": "1"}), apply("m2", {"a": "2"}, force=True)],
    "apply-removal-owned-by-updater": [apply("m1", {"a": "1", "b": "1"}), merge("m2", {"spec": {"b": "2"}}), apply("m1", {"a": "1"}), apply("m1", {})],
    "apply-then-updater-removes": [apply("m1", {"a": "1", "b": "1"}), merge("m2", {"spec": {"b": None}}), apply("m1", {"a": "1", "b": "1"}), apply("m1", {"a": "1"})],
    # updates
    "update-takes-fields": [apply("m1", FULL), put("m2", both(setter(["spec", "a"], "9"), setter(["spec", "items"], [item("one", value="9")])))],
    "update-removes-fields": [apply("m1", FULL), put("m2", both(dropper("spec", "b"), dropper("spec", "nested"), dropper("spec", "items")))],
    "update-nothing": [apply("m1", FULL), put("m2", lambda live: None), put("m1", lambda live: None)],
    "update-same-manager-as-applier": [apply("m1", {"a": "1"}), merge("m1", {"spec": {"b": "1"}}), merge("m1", {"spec": {"a": "2"}}), apply("m1", {"a": "1"}), apply("m1", {"a": "1"}, force=True)],
    "update-grows-entry": [create("m1", {"a": "1"}), merge("m1", {"spec": {"b": "1"}}), merge("m1", {"spec": {"a": None}}), merge("m1", {"spec": {"b": None}})],
    "update-without-manager": [create("m1", {"a": "1"}), merge("", {"spec": {"b": "1"}})],
    "update-removal-only-keeps-time": [create("m1", {"a": "1", "b": "1"}), merge("m2", {"spec": {"a": None}})],
    "update-map-to-empty": [create("m1", {"labels": {"k": "v"}, "nested": {"x": "1"}}), merge("m2", {"spec": {"labels": {"k": None}, "nested": {"x": None}}})],
    "json-patch": [create("m1", FULL), jpatch("m2", [{"op": "replace", "path": "/spec/a", "value": "7"}, {"op": "add", "path": "/spec/tags/-", "value": "z"}, {"op": "remove", "path": "/spec/items/0"}])],
    "json-patch-liberties": [create("m1", FULL), jpatch("m2", [{"op": "replace", "path": "/spec/c", "value": "7"}]), jpatch("m2", [{"op": "test", "path": "/spec/maybe", "value": None}, {"op": "add", "path": "/spec/plain/-1", "value": "n"}])],
    "json-patch-test-fails": [create("m1", FULL), jpatch("m2", [{"op": "test", "path": "/spec/a", "value": "no"}])],
    "json-patch-missing": [create("m1", FULL), jpatch("m2", [{"op": "remove", "path": "/spec/c"}]), jpatch("m2", [{"op": "add", "path": "/no/c", "value": 1}]), jpatch("m2", [{"op": "move", "from": "/spec/c", "path": "/spec/b"}]), jpatch("m2", [{"op": "jump", "path": "/spec/c"}]), jpatch("m2", [{"op": "replace", "path": "/spec/plain/7", "value": "x"}])],
    "merge-patch-nulls": [create("m1", FULL), merge("m2", {"spec": {"free": {"a": None, "l": [{"x": None}]}, "a": None, "c": None}})],
    "float-is-int": [create("m1", {"free": {"f": 1.0, "g": 1}}), apply("m2", {"free": {"f": 1, "g": 1}}), apply("m2", {"free": {"f": 1.5}}, force=True)],
    "cap-of-update-managers": [create("m0", {"a": "0"})] + [merge(f"m{i}", {"spec": {"labels": {f"k{i}": "v"}}}) for i in range(1, 13)],
    # status and scale
    "status-update": [create("m1", {"a": "1"}), merge("ctl", {"status": {"phase": "x", "conditions": [{"type": "A", "status": "True"}]}}, sub="status"), merge("ctl", {"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B"}]}}, sub="status"), merge("m1", {"spec": {"a": "2"}, "status": {"phase": "no"}})],
    "status-apply": [apply("m1", {"a": "1"}), apply("ctl", status={"conditions": [{"type": "A", "status": "True"}]}, sub="status"), apply("ctl2", status={"conditions": [{"type": "B", "status": "True"}]}, sub="status"), apply("ctl", status={"conditions": [{"type": "B", "status": "False"}]}, sub="status"), apply("ctl", status={"phase": "p"}, sub="status"), apply("m1", {"b": "1"})],
    "status-apply-with-spec": [apply("m1", {"a": "1"}), apply("ctl", {"a": "9", "b": "9"}, status={"phase": "p"}, sub="status"), apply("ctl", {"a": "9"}, status={"phase": "p"}, sub="status", force=True)],
    "status-write-of-metadata": [apply("m1", {"a": "1"}), merge("ctl", {"metadata": {"labels": {"l": "1"}}, "status": {"phase": "p"}}, sub="status"), apply("ctl", meta={"labels": {"q": "1"}}, status={"phase": "p"}, sub="status")],
    "status-put": [create("m1", {"a": "1"}), put("ctl", both(setter(["status"], {"phase": "p", "count": 1}), setter(["spec", "a"], "9")), sub="status"), put("ctl", setter(["status", "count"], 1), sub="status"), put("ctl", dropper("status", "count"), sub="status")],
    "status-ignores-sent-managed-fields": [create("m1", {"a": "1"}), put("ctl", both(setter(["status"], {"phase": "p"}), setter(["metadata", "managedFields"], [{}])), sub="status")],
    "status-same-manager-main-and-sub": [apply("m1", {"a": "1"}), apply("m1", status={"phase": "p"}, sub="status"), apply("m1", {"b": "1"}), merge("m1", {"status": {"phase": "q"}}, sub="status")],
    "scale": [apply("m1", {"n": 1}), merge("sc", {"spec": {"replicas": 3}}, sub="scale"), merge("sc", {"spec": {"replicas": 3}}, sub="scale"), apply("m1", {"n": 1}), apply("m1", {"n": 1}, force=True), merge("sc", {"spec": {"replicas": 4}}, sub="scale"), merge("sc", {"spec": {"replicas": 5}}, sub="scale")],
    "scale-unowned": [create("m1", {"a": "1"}), merge("sc", {"spec": {"replicas": 3}}, sub="scale")],
    # the record itself
    "managed-fields-cleared": [apply("m1", {"a": "1"}), put("m2", CLEAR), merge("m2", {"spec": {"a": "2"}}), apply("m1", {"a": "1"}), apply("m1", {"a": "1"}, force=True)],
    "managed-fields-cleared-by-patch": [apply("m1", {"a": "1"}), merge("m2", {"metadata": {"managedFields": [{}]}, "spec": {"b": "1"}}), apply("m3", {"b": "1"})],
    "managed-fields-empty-list": [apply("m1", {"a": "1"}), merge("m2", {"metadata": {"managedFields": []}})],
    "managed-fields-null": [apply("m1", {"a": "1"}), merge("m2", {"metadata": {"managedFields": None}, "spec": {"b": "1"}})],
    "managed-fields-renamed-by-json-patch": [create("kubectl-client-side-apply", {"a": "1"}), jpatch("kubectl", [{"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "kubectl"}, {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Apply"}]), apply("kubectl", {"b": "1"})],
    "managed-fields-entry-removed": [apply("m1", {"a": "1"}), apply("m2", {"b": "1"}), jpatch("m3", [{"op": "remove", "path": "/metadata/managedFields/0"}]), apply("m3", {"a": "3"})],
    "managed-fields-set": [apply("m1", {"a": "1"}), merge("m2", {"metadata": {"managedFields": [entry("q", "Apply", {"f:spec": {"f:a": {}, "f:zz": {"f:y": {}, ".": {}}}}, time="2020-01-01T00:00:00Z"), entry("p", "Update", {"f:spec": {}})]}}), apply("m1", {"a": "2"}), apply("q", {})],
    "managed-fields-set-with-keys": [apply("m1", {"items": [item("one", value="1")], "tags": ["t"]}), merge("m2", {"metadata": {"managedFields": [entry("q", "Apply", {"f:spec": {"f:items": {'k:{"name":"one"}': {".": {}, "f:value": {}}}, "f:tags": {'v:"t"': {}}, "x:unknown": {}, "f:plain": {"i:0": {}}}}, time="2020-01-01T00:00:00Z")]}}), apply("q", {"tags": ["t"]})],
    "managed-fields-bad-operation": [apply("m1", {"a": "1"}), merge("m2", {"metadata": {"managedFields": [entry("q", "Other", {})]}, "spec": {"b": "1"}})],
    "managed-fields-no-version": [apply("m1", {"a": "1"}), merge("m2", {"metadata": {"managedFields": [{"manager": "q", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {}}]}, "spec": {"b": "1"}})],
    "managed-fields-other-version": [apply("m1", {"a": "1"}), merge("m2", {"metadata": {"managedFields": [entry("q", "Apply", {"f:spec": {"f:a": {}}}, time="2020-01-01T00:00:00Z") | {"apiVersion": "golden.relay.dev/v0"}]}, "spec": {"b": "1"}}), apply("m1", {"a": "2"})],
    "managed-fields-bad-set": [apply("m1", {"a": "1"}), merge("m2", {"metadata": {"managedFields": [entry("q", "Apply", {"fspec": {}})]}, "spec": {"b": "1"}})],
    "managed-fields-bad-type": [apply("m1", {"a": "1"}), merge("m2", {"metadata": {"managedFields": [entry("q", "Apply", {}) | {"fieldsType": "FieldsV2"}]}, "spec": {"b": "1"}})],
    "managed-fields-in-config": [apply("m1", {"a": "1"}), apply("m1", {"a": "2"}, meta={"managedFields": []}), apply("m1", {"a": "2"}, meta={"managedFields": [{}]}), apply("m1", {"a": "2"}, meta={"managedFields": None})],
    "managed-fields-on-create": [create("m1", {"a": "1"}, meta={"managedFields": [entry("q", "Apply", {"f:spec": {"f:a": {}}}, time="2020-01-01T00:00:00Z")]}), create("m1", {"a": "1"})][:1],
    # misfits
    "unknown-field": [apply("m1", {"a": "1"}), apply("m1", {"zz": "1"})],
    "unknown-nested-field": [apply("m1", {"a": "1"}), apply("m1", {"items": [item("one", zz="1")]})],
    "wrong-types": [apply("m1", {"a": "1"}), apply("m1", {"a": 1}), apply("m1", {"n": "x"}), apply("m1", {"flag": "x"}), apply("m1", {"nested": "x"}), apply("m1", {"plain": {"x": 1}}), apply("m1", {"plain": [1]}), apply("m1", {"labels": {"k": 1.5}}), apply("m1", {"a": ["x", {"y": True}]}), apply("m1", {"flag": {"y": [1]}})],
    "wrong-kind": [apply("m1", {"a": "1"}), apply("m1", {"a": "1"}, kind="Other"), apply("m1", {"a": "1"}, apiVersion="golden.relay.dev/v0")],
    # from client-side to server-side apply
    "kubectl-upgrade": [create("kubectl-client-side-apply", {"a": "1", "b": "1"}, meta={"annotations": {LAST: last_applied({"a": "1", "b": "1"})}}), apply("kubectl", {"a": "2"}), apply("kubectl", {"a": "2", "labels": {"<k>": "&"}}, meta={"annotations": {"x": "y"}})],
    "kubectl-upgrade-real-conflict": [create("kubectl-client-side-apply", {"a": "1", "b": "1"}, meta={"annotations": {LAST: last_applied({"a": "1", "b": "1"})}}), merge("m2", {"spec": {"a": "5"}}), apply("kubectl", {"a": "2", "b": "2"}), apply("other", {"b": "2"})],
}

LOOSE = {
    "loose-status-is-a-field": [apply("m1", {"a": "1"}, status={"phase": "p"}, extra={"x": [1, {"y": 2}], "m": {"k": "v"}}), apply("m2", status={"phase": "q"}), merge("m2", {"status": {"phase": "q"}, "extra": {"m": {"j": "w"}}}), apply("m1", {"a": "1"})],
    "loose-type-change": [apply("m1", extra={"x": {"y": 1}}), apply("m2", extra={"x": "s"}, force=True), apply("m1", extra={"x": [1]}, force=True), merge("m3", {"extra": {"x": {"z": 1}}}), apply("m1", {})],
}

TIERS = [{"name": "fast", "models": ["anthropic/claude-haiku-4-5"]}, {"name": "strong", "models": ["anthropic/claude-opus-5-5"]}]
POLICY = {"serverRef": {"name": "main"}, "tiers": TIERS}

POLICIES = {
    "policy-apply-edit-apply": [apply("relayctl", POLICY), merge("kubectl-edit", {"spec": {"profile": "economy"}}), apply("relayctl", POLICY | {"profile": "quality"}), apply("relayctl", POLICY | {"profile": "quality"}, force=True)],
    "policy-use-then-apply": [apply("relayctl", POLICY | {"profile": "balanced"}), merge("relayctl-use", {"spec": {"profile": "economy"}}), apply("relayctl", POLICY | {"profile": "balanced"}), apply("relayctl", POLICY)],
    "policy-tiers": [apply("relayctl", POLICY), apply("relayctl", POLICY | {"tiers": TIERS[:1]}), apply("git", {"tiers": TIERS[1:]})],
    "policy-status": [apply("relayctl", POLICY), apply("relay-controller", status={"observedGeneration": 1, "conditions": [{"type": "Accepted", "status": "True", "reason": "Compiled", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}, sub="status"), apply("relay-controller", status={"observedGeneration": 1}, sub="status"), apply("relayctl", POLICY)],
}
