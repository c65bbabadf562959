"""Makes cases over the CRDs of crds/: objects that use every field (NAME.bases.json) and, for each part of them, what its
schema forbids (another type, a bound, a length, a pattern, a word, a missing or doubled key, a null, an unknown field), on
create, on update and on status. A case is a base with parts set or removed, by JSON pointer. Same schema, same cases.
"""
import copy
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
# Longer lists and strings are not tried beyond their bound: the objects would be larger than what they show.
LENGTH_MAX = 600
ITEMS_MAX = 40


def without_descriptions(schema):
    if isinstance(schema, dict):
        return {k: without_descriptions(v) for k, v in schema.items() if not (k == "description" and isinstance(v, str))}
    return [without_descriptions(v) for v in schema] if isinstance(schema, list) else schema


def get(value, pointer):
    for part in pointer.split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part.replace("~1", "/").replace("~0", "~")]
    return value


def apply(base, case):
    value = copy.deepcopy(base)
    for pointer, new in case.get("set", {}).items():
        parent, key = pointer.rsplit("/", 1)
        parent = get(value, parent)
        if isinstance(parent, list):
            parent[int(key)] = new
        else:
            parent[key.replace("~1", "/").replace("~0", "~")] = new
    for pointer in case.get("remove", []):
        parent, key = pointer.rsplit("/", 1)
        del get(value, parent)[key.replace("~1", "/").replace("~0", "~")]
    return value


def faults(schema, value, pointer, required):
    """(what, set, remove, schema) for a part and all below it."""
    kind = schema.get("type")
    if kind == "object" and isinstance(value, dict):
        yield "string", {pointer: "x"}, [], schema
        if "properties" in schema:
            yield "unknown field", {pointer + "/unknownField": 1}, [], schema
        most = schema.get("maxProperties")
        if most and most <= ITEMS_MAX:
            yield "too many", {pointer: {f"k{i}": next(iter(value.values())) for i in range(most + 1)}}, [], schema
    elif kind == "array" and isinstance(value, list):
        yield "string", {pointer: "x"}, [], schema
        yield "empty", {pointer: []}, [], schema
        if value:
            yield "doubled", {pointer: value + value[:1]}, [], schema
        most = schema.get("maxItems")
        if value and most and most <= ITEMS_MAX:
            yield "too many", {pointer: (value * (most + 1))[: most + 1]}, [], schema
    elif kind == "string":
        yield "number", {pointer: 5}, [], schema
        if "enum" in schema:
            yield "no word of it", {pointer: "Nope"}, [], schema
        if "pattern" in schema:
            yield "pattern", {pointer: "?!"}, [], schema
        if "format" in schema:
            yield "format", {pointer: "2026-13-41"}, [], schema
        if schema.get("minLength"):
            yield "too short", {pointer: ""}, [], schema
        if schema.get("maxLength", LENGTH_MAX) < LENGTH_MAX:
            yield "too long", {pointer: "a" * (schema["maxLength"] + 1)}, [], schema
    elif kind == "integer":
        yield "string", {pointer: "5"}, [], schema
        yield "fraction", {pointer: 1.5}, [], schema
        if "minimum" in schema:
            yield "too small", {pointer: schema["minimum"] - 1}, [], schema
        if "maximum" in schema:
            yield "too large", {pointer: schema["maximum"] + 1}, [], schema
    elif kind == "boolean":
        yield "string", {pointer: "true"}, [], schema
    if pointer.count("/") > 1:
        yield "null", {pointer: None}, [], schema
        if required is not None:
            yield "missing", {}, [pointer], schema
    for name, below in schema.get("properties", {}).items():
        if isinstance(value, dict) and name in value:
            yield from faults(below, value[name], f"{pointer}/{name}", name in schema.get("required", []))
    if isinstance(value, dict) and isinstance(schema.get("additionalProperties"), dict) and value:
        key = sorted(value)[0]
        yield from faults(schema["additionalProperties"], value[key], f"{pointer}/{key.replace('/', '~1')}", False)
    if isinstance(value, list) and value:
        last = len(value) - 1
        yield from faults(schema["items"], value[last], f"{pointer}/{last}", None)


def place(what, change, remove):
    return f"{what} {(list(change) + remove)[0]}"


def changes(schema, value, pointer):
    """Other values that are allowed, for rules about what may change."""
    kind = schema.get("type")
    if kind == "string" and "enum" in schema:
        for word in schema["enum"]:
            if word != value:
                yield word, {pointer: word}, []
                break
    elif kind == "string" and "format" not in schema and isinstance(value, str) and value:
        other = value[:-1] + ("b" if value[-1] != "b" else "c") if not value[-1].isdigit() else value[:-1] + str((int(value[-1]) + 1) % 10)
        yield "other", {pointer: other}, []
    elif kind == "integer":
        yield "more", {pointer: value + 1}, []
        yield "less", {pointer: value - 1}, []
    elif kind == "boolean":
        yield "turned", {pointer: not value}, []
    elif kind == "array" and isinstance(value, list) and len(value) > 1:
        yield "other order", {pointer: value[::-1]}, []
        yield "one less", {pointer: value[1:]}, []
    if isinstance(value, dict):
        for name in value:
            below = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            path = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            if name not in schema.get("required", []) and pointer.count("/") >= 1:
                yield "gone", {}, [path]
            for what, change, remove in changes(below, value[name], path):
                yield what, change, remove
    if isinstance(value, list):
        for index, item in enumerate(value[:1]):
            for what, change, remove in changes(schema["items"], item, f"{pointer}/{index}"):
                yield what, change, remove


def fields_added(schema, value, other, pointer):
    """Fields that a base lacks and another has."""
    for name, found in other.items():
        if name not in value:
            yield "added", {f"{pointer}/{name}": found}, []


def cases_of(crd, bases, extra):
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    seen = set()
    cases = []

    def add(base, name, change, remove, shape=None, **more):
        # the same fault of the same kind of part is shown once
        shape = json.dumps(shape, sort_keys=True)
        if shape != "null" and shape in seen:
            return
        seen.add(shape)
        case = {"name": f"{base}: {name}", "base": base, **more}
        if change:
            case["set"] = change
        if remove:
            case["remove"] = remove
        same = json.dumps([change, remove, more, None if "old" in more else base], sort_keys=True)
        if same in seen or (name in seen and change | dict.fromkeys(remove)):
            return
        seen.update([same, name])
        cases.append(case)

    for base, value in bases.items():
        add(base, "as it is", {}, [])
        for what, change, remove, part in faults(schema["spec"], value["spec"], "/spec", True):
            add(base, place(what, change, remove), change, remove, shape=(what, part))
        for name in ("a" * 41, "1a", "a.b"):
            add(base, "name " + name, {"/metadata/name": name}, [])
    for base, value in bases.items():
        add(base, "nothing changes", {}, [], old=base)
        for what, change, remove in changes(schema["spec"], value["spec"], "/spec"):
            add(base, "update " + place(what, change, remove), change, remove, old=base)
        for other in bases:
            for what, change, remove in fields_added(schema["spec"], value["spec"], bases[other]["spec"], "/spec"):
                add(base, "update " + place(what, change, remove), change, remove, old=base)
    for base, value in bases.items():
        if "status" not in value:
            continue
        add(base, "status", {}, [], old=base, subresource="status")
        for what, change, remove, part in faults(schema["status"], value["status"], "/status", None):
            add(base, "status " + place(what, change, remove), change, remove, shape=("status " + what, part), old=base, subresource="status")
    for name, case in extra.items():
        cases.append({"name": name, **case})
    names = [case["name"] for case in cases]
    for case in cases:
        if names.count(case["name"]) > 1:
            case["name"] += " " + json.dumps([case.get("set"), case.get("remove")], sort_keys=True)
    assert len({case["name"] for case in cases}) == len(cases)
    return cases
