#!/usr/bin/env python3
"""Records what a kube-apiserver answers to the cases of this folder: NAME.crd.json + NAME.cases.json -> NAME.answers.json.

    record.py KUBECONFIG [NAME...]

The server should be one of its own (tests/engines/kubernetes.sh start DIR): CRDs are applied and removed. Where there is
NAME.bases.json, the CRD is that of crds/NAME.yaml, and the cases are made anew by corpus.py and extra.json. Objects that an
update starts from may be invalid, so they are stored while the CRD has a schema that lets everything through.
"""
import base64
import copy
import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.request

import yaml

import corpus

HERE = os.path.dirname(os.path.abspath(__file__))
LAX = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
KINDS = ("layamodels", "layaservers", "trainingruns", "evaluationgates", "routingpolicies")
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Server:
    def __init__(self, kubeconfig):
        text = open(kubeconfig).read()
        self.address = re.search(r"server: (\S+)", text)[1]
        self.token = re.search(r"name: admin\n\s+user: {token: (\w+)}", text)[1]
        ca = base64.b64decode(re.search(r"certificate-authority-data: (\S+)", text)[1]).decode()
        self.tls = ssl.create_default_context(cadata=ca)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, method=method)
        request.add_header("Authorization", "Bearer " + self.token)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


def until(what, done):
    end = time.time() + 30
    while not done():
        if time.time() > end:
            sys.exit("waited too long: " + what)
        time.sleep(0.2)


def put_crd(server, crd):
    name = crd["metadata"]["name"]
    status, found = server.call("GET", f"{CRDS}/{name}")
    if status == 404:
        status, answer = server.call("POST", CRDS, crd)
    else:
        crd = copy.deepcopy(crd)
        crd["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        status, answer = server.call("PUT", f"{CRDS}/{name}", crd)
    if status not in (200, 201):
        sys.exit(f"{name}: {answer['message']}")

    def established():
        conditions = server.call("GET", f"{CRDS}/{name}")[1].get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    until("established", established)


def answer_of(status, body):
    if status in (200, 201):
        if body is None:
            return {"status": status}
        metadata = body.get("metadata", {})
        for field in ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "namespace"):
            metadata.pop(field, None)
        return {"status": status, "object": body}
    causes = body.get("details", {}).get("causes", [])
    if not causes:
        return {"status": status, "message": body["message"]}
    causes = sorted([c.get("field", ""), c["reason"], c.get("message", "")] for c in causes)
    return {"status": status, "causes": causes}


def lines(name, items):
    with open(f"{HERE}/{name}", "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(item, ensure_ascii=False, sort_keys=True) for item in items) + "\n]\n")


def load(name):
    """The CRD and its cases, each with `object` and for an update `old`; those of our kinds are made anew."""
    if not os.path.exists(f"{HERE}/{name}.bases.json"):
        cases = json.load(open(f"{HERE}/{name}.cases.json"))
        return json.load(open(f"{HERE}/{name}.crd.json")), cases
    crd = corpus.without_descriptions(yaml.safe_load(open(f"{HERE}/../../../../../crds/{name}.yaml")))
    with open(f"{HERE}/{name}.crd.json", "w") as out:
        json.dump(crd, out, indent=1, sort_keys=True)
    bases = json.load(open(f"{HERE}/{name}.bases.json"))
    cases = corpus.cases_of(crd, bases, json.load(open(f"{HERE}/extra.json")).get(name, {}))
    lines(f"{name}.cases.json", cases)
    whole = []
    for case in cases:
        case = dict(case, object=corpus.apply(bases[case["base"]], case))
        if "old" in case:
            case["old"] = bases[case["old"]]
        whole.append(case)
    return crd, whole


def record(server, name):
    crd, cases = load(name)
    group, version = crd["spec"]["group"], crd["spec"]["versions"][0]
    plural = crd["spec"]["names"]["plural"]
    namespace = f"/apis/{group}/{version['name']}/namespaces/golden"
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "golden"}})
    server.call("DELETE", f"{CRDS}/{crd['metadata']['name']}")
    until("the old CRD is gone", lambda: server.call("GET", f"{CRDS}/{crd['metadata']['name']}")[0] == 404)
    lax = copy.deepcopy(crd)
    lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = LAX
    lax["spec"]["versions"][0].pop("subresources", None)
    put_crd(server, lax)
    answers = []
    # objects of the same name are stored in namespaces of their own, the same object once
    stored, places = {}, {}
    for index, case in enumerate(cases):
        if "old" in case:
            key = json.dumps(case["old"], sort_keys=True)
            if key not in places:
                places[key] = f"{namespace}{len(places)}"
                server.call("POST", "/api/v1/namespaces", {"metadata": {"name": places[key].rsplit("/", 1)[1]}})
                old = case["old"]
                until("first write", lambda: server.call("POST", f"{places[key]}/{plural}", old)[0] in (201, 409))
            stored[index] = places[key]
    put_crd(server, crd)
    probe = {"apiVersion": f"{group}/{version['name']}", "kind": crd["spec"]["names"]["kind"], "metadata": {"name": "probe"}, "unknown": 1}
    until("strict", lambda: server.call("POST", f"{namespace}/{plural}?dryRun=All&fieldValidation=Strict", probe)[0] == 400)
    for index, case in enumerate(cases):
        new = copy.deepcopy(case["object"])
        options = "?dryRun=All&fieldValidation=Strict"
        if index in stored:
            path = f"{stored[index]}/{plural}/{new['metadata']['name']}"
            new["metadata"]["resourceVersion"] = server.call("GET", path)[1]["metadata"]["resourceVersion"]
            subresource = "/" + case["subresource"] if "subresource" in case else ""
            status, body = server.call("PUT", path + subresource + options, new)
        else:
            status, body = server.call("POST", f"{namespace}/{plural}{options}", new)
        if status in (200, 201) and case.get("set", case.get("remove")) and index % 8:
            body = None  # one stored object of eight is enough of them
        answers.append({"name": case["name"], **answer_of(status, body)})
    lines(f"{name}.answers.json", answers)
    server.call("DELETE", f"{CRDS}/{crd['metadata']['name']}")
    refused = sum(a["status"] >= 400 for a in answers)
    print(f"{name}: {len(answers)} cases, {refused} refused")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[2:] or ("gadgets", *KINDS):
        record(Server(sys.argv[1]), name)
