#!/usr/bin/env python3
"""Measures the bars of the router as a service (docs/performance.md, "The router as a service").

    python3 tests/bench/router_bars.py start RELAYD [--decisions 100000] [--tasks 10000]

`start`: fills a store with learned tasks and decisions through the API, restarts the router and prints how long it takes to be
ready, and how long memory takes to judge a request. Uses loopback only and a home of its own; needs release builds.
"""

import argparse
import http.client
import json
import os
import random
import re
import signal
import statistics
import subprocess
import tempfile
import threading
import time

WORDS = """parser date refund form button table export import cache queue worker session token invoice report chart
menu footer header search filter index query column schema editor upload download image video player stream socket
retry timeout limit budget policy router server client gateway cluster node volume backup restore rename split merge
sort group page scroll modal dialog tooltip badge avatar profile account team project task ticket comment label tag
branch commit release build deploy rollback alert metric trace span log level format locale currency amount price tax
discount coupon basket order shipment address phone email password reset login logout signup consent cookie banner""".split()
LABELS = {
    "task_type": "bug_fix", "complexity": 1, "scope": "single_file", "risk": 0, "ambiguity": 0, "reasoning_requirement": 1,
    "capability_tier": "fast", "reasoning_effort": "low", "agent": "software-engineer", "validation_level": "unit_test",
    "requires_write": True, "requires_shell": False, "requires_tests": True, "requires_web": False, "requires_browser": False,
    "requires_database": False, "requires_git": False, "security_sensitive": True,
}


class Router:
    """One relayd on free ports."""

    def __init__(self, program, home):
        environment = {"RELAY_HOME": home, "PATH": os.environ["PATH"]}
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [program, "router", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-format", "json"],
            env=environment, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            event = json.loads(line)
            if event["message"] == "router is listening":
                self.address = event["address"]
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        while self.ask("GET", "/ready")[0] != 200:
            time.sleep(0.002)
        self.ready_after = time.monotonic() - self.began

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.address)
        headers = {"content-type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or "null")

    def resident(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def request(rng):
    return " ".join(["Fix the"] + rng.sample(WORDS, 6))


def fill(router, decisions, tasks):
    rng = random.Random(1)
    shape = router.ask("GET", "/v1/contract")[1]["shape"]
    known = set()
    while len(known) < tasks:
        known.add(request(rng))
    known = sorted(known)
    for at in range(0, tasks, 200):
        exercises = [{"request": text, "labels": LABELS, "lesson": "Look at the tests first."} for text in known[at:at + 200]]
        status, answer = router.ask("POST", "/v1/learn", {"session": "bench", "shape": shape, "exercises": exercises})
        assert status == 200, answer

    def some(count, seed):
        rng = random.Random(seed)
        connection = http.client.HTTPConnection(router.address)
        for at in range(count):
            body = json.dumps({"request": request(rng), "conversation_id": f"c{seed}-{at // 4}"})
            connection.request("POST", "/v1/route", body, {"content-type": "application/json"})
            decision = json.loads(connection.getresponse().read())
            if at % 4 == 0:
                outcome = {"decision_id": decision["id"], "attempt": 1, "result": "success", "tests_passed": True,
                           "tool_failures": 0, "final": True}
                connection.request("POST", "/v1/outcomes", json.dumps(outcome), {"content-type": "application/json"})
                connection.getresponse().read()

    threads = [threading.Thread(target=some, args=(decisions // 4, seed)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return known


def start(program, decisions, tasks):
    with tempfile.TemporaryDirectory() as home:
        router = Router(program, home)
        print(f"empty home           ready after {router.ready_after * 1000:.0f} ms")
        known = fill(router, decisions, tasks)
        router.end()
        size = os.path.getsize(os.path.join(home, "relay.db")) / 1e6
        times = []
        for _ in range(5):
            router = Router(program, home)
            times.append(router.ready_after * 1000)
            judged = []
            for text in known[:200]:
                _, decision = router.ask("POST", "/v1/route", {"request": text, "dry_run": True})
                assert decision["assessment"]["source"] == "memory", decision["assessment"]["source"]
                judged.append(decision["provenance"]["timings_ms"]["assess"])
            resident = router.resident()
            router.end()
        print(f"{decisions} decisions, {tasks} learned tasks, {size:.0f} MB: ready after "
              f"{min(times):.0f} ms (best of 5; median {statistics.median(times):.0f} ms), {resident:.0f} MB resident")
        judged.sort()
        print(f"from arrival to memory's answer: p50 {judged[len(judged) // 2]:.2f} ms, p99 {judged[int(len(judged) * 0.99)]:.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["start"])
    parser.add_argument("program")
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--tasks", type=int, default=10_000)
    arguments = parser.parse_args()
    start(arguments.program, arguments.decisions, arguments.tasks)


if __name__ == "__main__":
    main()
