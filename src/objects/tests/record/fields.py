#!/usr/bin/env python3
"""Records the golden histories of field ownership from a real kube-apiserver.

    fields.py KUBECONFIG KUBECTL OUT_DIR

KUBECONFIG is that of an API server of its own (the script puts its CRDs, `crds.json`, there). Every step starts in a new
second, so that times of managedFields tell the steps apart; they are written as seconds of a made-up minute."""

import base64
import copy
import datetime
import json
import pathlib
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from fields_histories import HISTORIES, LOOSE, POLICIES

NAMESPACE = "default"
TYPES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json", "apply": "application/apply-patch+yaml"}


class Server:
    def __init__(self, kubeconfig, kubectl):
        view = json.loads(subprocess.check_output([kubectl, "--kubeconfig", kubeconfig, "config", "view", "--raw", "--minify", "-o", "json"]))
        cluster, user = view["clusters"][0]["cluster"], view["users"][0]["user"]
        self.url = cluster["server"]
        self.token = user.get("token")
        ca = cluster.get("certificate-authority-data")
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(ca).decode() if ca else None, cafile=cluster.get("certificate-authority"))
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile("wb", suffix=".pem") as pem:
                pem.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
                pem.flush()
                self.context.load_cert_chain(pem.name)

    def call(self, method, path, body=None, content="application/json"):
        request = urllib.request.Request(self.url + path, method=method, data=None if body is None else json.dumps(body).encode())
        request.add_header("Content-Type", content)
        request.add_header("Accept", "application/json")
        request.add_header("User-Agent", "agent/1.0 (golden)")
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


def next_second():
    now = time.time()
    time.sleep(1.02 - now % 1)
    return int(time.time())


def made_up(index):
    return f"2026-01-01T00:00:{index:02}Z"


def redact(value, starts, uid):
    """Times of a step become its second; what differs from run to run becomes constant."""
    if isinstance(value, dict):
        out = {}
        for name, inner in value.items():
            if name == "resourceVersion":
                inner = "1"
            elif name == "uid" and inner == uid:
                inner = "uid"
            elif name in ("time", "creationTimestamp") and isinstance(inner, str) and not inner.startswith("2020"):
                seconds = datetime.datetime.fromisoformat(inner.replace("Z", "+00:00")).timestamp()
                inner = made_up(max(i for i, start in enumerate(starts) if start <= seconds))
            else:
                inner = redact(inner, starts, uid)
            out[name] = inner
        return out
    if isinstance(value, list):
        return [redact(inner, starts, uid) for inner in value]
    return value


def record(server, name, kind, plural, version, steps, out):
    path = f"/apis/{version}/namespaces/{NAMESPACE}/{plural}"
    server.call("PATCH", f"{path}/{name}", {"metadata": {"finalizers": None}}, TYPES["merge"])
    server.call("DELETE", f"{path}/{name}")
    starts, recorded, live, uid = [], [], None, None
    for step in steps:
        step = copy.deepcopy({k: v for k, v in step.items() if k != "edit"}) | ({"edit": step["edit"]} if "edit" in step else {})
        if step["verb"] == "update":
            body = copy.deepcopy(live)
            step.pop("edit")(body)
        else:
            body = step["body"]
        if step["verb"] in ("apply", "create"):
            body = {"apiVersion": version, "kind": kind} | body
            body["metadata"] |= {"name": name, "namespace": NAMESPACE}
            last = body["metadata"].get("annotations", {})
            for key in last:
                last[key] = last[key].replace("NAME", name).replace("NS", NAMESPACE)
        query = {"fieldManager": step["manager"]} if step["manager"] else {}
        if step["verb"] == "apply":
            query["force"] = "true" if step["force"] else "false"
        target = path if step["verb"] == "create" else f"{path}/{name}" + (f"/{step['sub']}" if step["sub"] else "")
        method = {"create": "POST", "update": "PUT"}.get(step["verb"], "PATCH")
        starts.append(next_second())
        code, answer = server.call(method, target + "?" + urllib.parse.urlencode(query), body, TYPES.get(step["verb"], "application/json"))
        _, now = server.call("GET", f"{path}/{name}")
        written = now.get("metadata", {}).get("resourceVersion") != (live or {}).get("metadata", {}).get("resourceVersion")
        live = now if now.get("kind") == kind else None
        uid = (live or {}).get("metadata", {}).get("uid", uid)
        recorded.append({"verb": step["verb"], "manager": step["manager"] or "agent", "subresource": step["sub"], "force": step["force"],
                         "body": body, "code": code, "written": written,
                         "answer": answer if code >= 300 else None, "object": copy.deepcopy(live)})
    final = {"kind": kind, "steps": redact(recorded, starts, uid)}
    text = json.dumps(final, indent=1, sort_keys=True, ensure_ascii=False)
    (out / f"{name}.json").write_text(text + "\n")


def main():
    kubeconfig, kubectl, out = sys.argv[1:4]
    out = pathlib.Path(out)
    server = Server(kubeconfig, kubectl)
    for crd in json.loads((out / "crds.json").read_text()):
        code, answer = server.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        if code not in (201, 409):
            sys.exit(f"{code}: {answer}")
    kinds = [("Shape", "shapes", "golden.relay.dev/v1", HISTORIES), ("Loose", "looses", "golden.relay.dev/v1", LOOSE),
             ("RoutingPolicy", "routingpolicies", "relay.dev/v1alpha1", POLICIES)]
    for _, plural, version, _ in kinds:
        for _ in range(100):
            if server.call("GET", f"/apis/{version}/namespaces/{NAMESPACE}/{plural}")[0] == 200:
                break
            time.sleep(0.2)
    jobs = [(name, *kind[:3], steps) for kind in kinds for name, steps in kind[3].items()]
    gate = threading.Semaphore(12)
    failed = []

    def run(job):
        with gate:
            try:
                record(server, *job, out)
            except Exception as error:  # reported below, with the history's name
                failed.append((job[0], repr(error)))

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(len(jobs), "histories,", len(failed), "failed", failed)


main()
