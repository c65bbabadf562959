#!/usr/bin/env python3
"""Measures the bars of objects (docs/performance.md, "Objects").

    python3 tests/bench/objects_bars.py BIN_FOLDER [--policies 1000] [--edits 100] [--requests 10000]

Starts `relayd local` with a home of its own and prints: an edit of a policy until a decision is made by it, and requests lost
meanwhile; a start with many policies until each was passed once, and the writes that cost; memory and processor time when
nothing happens; how long `relayctl` takes. Loopback only; needs release builds of relayd and relayctl in BIN_FOLDER.
"""

import argparse
import http.client
import json
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time

PATH = "/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies"


class Daemon:
    """One relayd local on free ports."""

    def __init__(self, folder, home):
        self.home = home
        self.environment = {"RELAY_HOME": home, "PATH": os.environ["PATH"]}
        self.began = time.monotonic()
        ports = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--daemon-port", "0"]
        self.process = subprocess.Popen([os.path.join(folder, "relayd"), "local", *ports, "--log-format", "json"],
                                        env=self.environment, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            event = json.loads(line)
            if event["message"] == "router is listening":
                self.router, self.admin = event["address"], event["admin_address"]
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        with open(os.path.join(home, "daemon/endpoint.json"), encoding="utf-8") as file:
            self.objects = json.load(file)["url"].removeprefix("http://")
        with open(os.path.join(home, "daemon/token"), encoding="utf-8") as file:
            self.token = file.read()

    def connection(self, address):
        return http.client.HTTPConnection(address, timeout=30)

    def object(self, connection, method, path, body=None, kind="application/json"):
        headers = {"authorization": f"Bearer {self.token}", "content-type": kind}
        connection.request(method, PATH + path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def metrics(self):
        connection = self.connection(self.admin)
        connection.request("GET", "/metrics")
        found = {}
        for line in connection.getresponse().read().decode().splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                found[name] = float(value)
        return found

    def total(self, prefix):
        return sum(value for name, value in self.metrics().items() if name.startswith(prefix))

    def memory_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            for line in file:
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) / 1024

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def policy(name, number):
    return {"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": name},
            "spec": {"profile": "balanced", "privacy": {"retentionDays": 1 + number % 3000}}}


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def edits(daemon, count, requests):
    """Edits one policy while requests run; each edit is timed until a decision names its revision."""
    objects, router = daemon.connection(daemon.objects), daemon.connection(daemon.router)
    assert daemon.object(objects, "POST", "", policy("default", 0))[0] == 201
    sent, lost, stop = [0], [0], threading.Event()

    def load():
        connection = daemon.connection(daemon.router)
        while not stop.is_set() or sent[0] < requests:
            sent[0] += 1
            try:
                body = json.dumps({"request": f"Rename field {sent[0]} of the form"})
                connection.request("POST", "/v1/route", body, {"content-type": "application/json"})
                response = connection.getresponse()
                response.read()
                lost[0] += response.status != 200
            except OSError:
                lost[0] += 1
                connection = daemon.connection(daemon.router)

    clients = [threading.Thread(target=load) for _ in range(2)]
    for client in clients:
        client.start()
    waits = []
    before = None
    for number in range(1, count + 1):
        patch = {"spec": {"privacy": {"retentionDays": 1 + number}}}
        began = time.monotonic()
        status, _ = daemon.object(objects, "PATCH", "/default", patch, "application/merge-patch+json")
        assert status == 200
        while True:
            router.request("POST", "/v1/route", json.dumps({"request": "Rename the author field"}),
                           {"content-type": "application/json"})
            decision = json.loads(router.getresponse().read())
            revision = decision["provenance"]["policy"]["revision"]
            if before is not None and revision != before:
                break
            if before is None and number == 1:
                status, stored = daemon.object(objects, "GET", "/default")
                if stored.get("status", {}).get("acceptedGeneration") == stored["metadata"]["generation"] \
                        and stored["status"].get("acceptedRevision") == revision:
                    break
            if time.monotonic() - began > 20:
                raise SystemExit(f"edit {number} was not in force after 20 s")
        before = revision
        waits.append(time.monotonic() - began)
    stop.set()
    for client in clients:
        client.join()
    print(f"{count} edits: to a decision p50 {statistics.median(waits) * 1e3:.0f} ms, p99 {percentile(waits, .99) * 1e3:.0f} ms, "
          f"most {max(waits) * 1e3:.0f} ms; {lost[0]} of {sent[0]} requests lost")


def many(folder, daemon, count):
    """Fills the store, starts again, and sees each object passed once without a write."""
    objects = daemon.connection(daemon.objects)
    began = time.monotonic()
    for number in range(count):
        assert daemon.object(objects, "POST", "", policy(f"many-{number}", number))[0] == 201
    print(f"{count} policies created one after another in {time.monotonic() - began:.1f} s")
    while True:
        _, listed = daemon.object(objects, "GET", "")
        settled = sum(1 for item in listed["items"] if item.get("status", {}).get("acceptedRevision"))
        if settled >= count:
            break
        time.sleep(0.2)
    print(f"all accepted after {time.monotonic() - began:.1f} s")
    daemon.stop()
    daemon = Daemon(folder, daemon.home)
    listening = time.monotonic() - daemon.began
    passed = 'relay_controller_reconcile_total'
    while daemon.total(passed) < count:
        time.sleep(0.02)
    print(f"start: listening after {listening:.2f} s, {count} policies passed after {time.monotonic() - daemon.began:.2f} s, "
          f"{daemon.total('relay_controller_status_writes_total'):.0f} status writes")
    time.sleep(10)
    print(f"writes 10 s later: {daemon.total('relay_controller_status_writes_total'):.0f}")
    before, began = daemon.processor_seconds(), time.monotonic()
    time.sleep(30)
    share = (daemon.processor_seconds() - before) / (time.monotonic() - began)
    print(f"idle with {count} policies: {daemon.memory_mb():.1f} MB resident, {share:.3%} of a core")
    return daemon


def commands(folder, daemon):
    program = os.path.join(folder, "relayctl")
    for words in (["--version"], ["get", "rp", "default"], ["get", "rp"]):
        times = []
        for _ in range(20):
            began = time.monotonic()
            subprocess.run([program, *words], env=daemon.environment, check=True, stdout=subprocess.DEVNULL)
            times.append(time.monotonic() - began)
        print(f"relayctl {' '.join(words)}: p50 {statistics.median(times) * 1e3:.1f} ms, most {max(times) * 1e3:.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--policies", type=int, default=1000)
    parser.add_argument("--edits", type=int, default=100)
    parser.add_argument("--requests", type=int, default=10000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        daemon = Daemon(options.folder, home)
        try:
            print(f"idle, nothing stored: {daemon.memory_mb():.1f} MB resident")
            edits(daemon, options.edits, options.requests)
            commands(options.folder, daemon)
            daemon = many(options.folder, daemon, options.policies)
            commands(options.folder, daemon)
        finally:
            daemon.stop()


main()
