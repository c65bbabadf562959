#!/usr/bin/env python3
"""Measures the bars of models and servers on a real Docker Engine (docs/performance.md, "Models and servers").

    cargo build --release -p relayd -p relayctl -p serve -p xtask && cargo xtask images
    python3 tests/bench/serving_bars.py target/release [CASE…]

Router and controller are two processes (`relayd local --no-controller`, `relayd controller --backend docker`); servers are
containers of the fault image in healthy mode with 256 MiB, models are random checkpoints that were imported and verified.
Each case puts a constant load (`xtask load`, open loop) on `/v1/route`, and on `/v1/systemone` where it counts there, and does
what its name says meanwhile. A request is lost when it has no 200 within 5 s of the moment it was due.

Cases: rollout, rollback, crash (a candidate dies while it is watched), drain, kill, engine, controller (each 200/s for 60 s), gap
(a candidate of strategy Replace dies right after its promotion), idle (the controller with 20 servers). The engine is one of its own beside that of the tests
(RELAY_ENGINES, bridge relaybars0): case `engine` restarts it. Root only; loopback and containers only.
"""

import argparse
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENGINE = os.path.join(ROOT, "tests/engines/docker.sh")
OBJECTS = "/apis/relay.dev/v1alpha1/namespaces/default"
QUESTION = {"state": "Fix the login token expiry", "questions": {
    "urgent": {"type": "choice", "instructions": "Is it urgent?", "criteria": {"yes": None, "no": None}}}}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Engine:
    """A Docker Engine of its own with the two images in it."""

    def __init__(self, state, images):
        self.environment = dict(os.environ, RELAY_ENGINES=state, RELAY_ENGINE_BRIDGE="relaybars0",
                                RELAY_ENGINE_SUBNET="172.31.249.1/24")
        self.environment.pop("DOCKER_HOST", None)
        self.host = self.call("start")
        source = os.environ.get("DOCKER_HOST") or subprocess.run(
            [ENGINE, "start"], capture_output=True, text=True, check=True).stdout.strip()
        for image in images:
            saved = subprocess.Popen(["docker", "--host", source, "save", image], stdout=subprocess.PIPE)
            subprocess.run(self.line("load"), stdin=saved.stdout, check=True, capture_output=True)
            saved.wait()

    def call(self, word):
        return subprocess.run([ENGINE, word], env=self.environment, capture_output=True, text=True, check=True).stdout.strip()

    def line(self, *words):
        return ["docker", "--host", self.host, *words]

    def told(self, *words):
        return subprocess.run(self.line(*words), capture_output=True, text=True, check=True).stdout.strip()

    def faulty(self, image, switches):
        """The fault image as one that fails so."""
        made = self.told("create", image)
        made_image = self.told("commit", "--change", f"ENV RELAY_FAULT={switches}", made)
        self.told("rm", made)
        return made_image

    def containers(self, *more):
        return self.told("ps", "--quiet", *more).split()

    def clean(self):
        """Removes whatever a run left, ours by label."""
        mine = ["--filter", "label=relay.dev/instance"]
        for ids, remove in (
                (self.told("ps", "--all", "--quiet", *mine).split(), ["rm", "--force", "--volumes"]),
                (self.told("volume", "ls", "--quiet", *mine).split(), ["volume", "rm", "--force"]),
                (self.told("network", "ls", "--quiet", *mine).split(), ["network", "rm"])):
            if ids:
                self.told(*remove, *ids)


class Program:
    """A `relayd` that logs to a file and ends with the script."""

    def __init__(self, world, words, log):
        self.path = os.path.join(world.home, log)
        self.log = open(self.path, "ab")
        self.process = subprocess.Popen([world.bin("relayd"), *words, "--log-format", "json"], env=world.environment,
                                        stdout=self.log, stderr=self.log)

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(60)
        self.log.close()

    def memory_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class World:
    """A home with two models and a server, router and controller beside each other."""

    def __init__(self, options, engine, home):
        self.options, self.engine, self.home = options, engine, home
        self.port, self.daemon_port, self.admin = free_port(), free_port(), free_port()
        self.environment = dict(os.environ, RELAY_HOME=home, DOCKER_HOST=engine.host, RELAYD_LAYA_IMAGE=options.laya_image)
        self.token = os.path.join(home, "internal")
        with open(self.token, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("controller a-token-of-at-least-32-characters-for-the-bars\n")
        self.controller = None
        # Models are imported by a process that has the engine; then it makes room for two.
        first = self.local(["--backend", "docker"])
        for number, name in enumerate(("v1", "v2")):
            folder = os.path.join(home, f"checkpoint-{name}")
            self.run("laya", "random-checkpoint", "--contract", "relay", "--seed", str(number + 1), folder)
            self.run("relayctl", "model", "import", name, "--dir", folder)
        first.end()
        self.router = self.local(["--no-controller", "--internal-token-file", self.token])
        self.start_controller()

    def local(self, more):
        program = Program(self, ["local", "--listen", f"127.0.0.1:{self.port}", "--admin-listen", "127.0.0.1:0", "--daemon-port",
                                 str(self.daemon_port), *more], "local.log")
        self.until("relayd local answers", lambda: self.answers(), 30)
        return program

    def start_controller(self):
        self.controller = Program(self, [
            "controller", "--backend", "docker", "--laya-image", self.options.laya_image, "--namespace", "default",
            "--kubeconfig", os.path.join(self.home, "daemon/kubeconfig"), "--router-url", f"http://127.0.0.1:{self.port}",
            "--router-token-file", self.token, "--admin-listen", f"127.0.0.1:{self.admin}"], "controller.log")

    def bin(self, name):
        return os.path.join(self.options.folder, name)

    def run(self, *words):
        done = subprocess.run([self.bin(words[0]), *words[1:]], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def answers(self):
        try:
            with open(os.path.join(self.home, "daemon/endpoint.json"), encoding="utf-8") as file:
                json.load(file)
            return self.decide()[0] == 200
        except (OSError, http.client.HTTPException, ValueError):
            return False

    def decide(self, timeout=5):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request("POST", "/v1/route", json.dumps({"request": "Fix the login token expiry"}),
                               {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def object(self, method, path, body=None, kind="application/json"):
        with open(os.path.join(self.home, "daemon/token"), encoding="utf-8") as file:
            token = file.read().strip()
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon_port, timeout=30)
        try:
            connection.request(method, OBJECTS + path, json.dumps(body) if body is not None else None,
                               {"authorization": f"Bearer {token}", "content-type": kind})
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        if response.status >= 400:
            raise SystemExit(f"{method} {path}: {response.status} {answer}")
        return answer

    def status(self, name="main"):
        return self.object("GET", f"/layaservers/{name}").get("status", {})

    def patch(self, spec, name="main"):
        return self.object("PATCH", f"/layaservers/{name}", {"spec": spec}, "application/merge-patch+json")

    def until(self, what, so, seconds):
        deadline = time.monotonic() + seconds
        while not so():
            if time.monotonic() > deadline:
                tail = subprocess.run(["tail", "-n", "20", os.path.join(self.home, "controller.log")], capture_output=True,
                                      text=True).stdout
                raise SystemExit(f"not within {seconds} s: {what}\n{tail}")
            time.sleep(0.05)

    def serve(self, name="main", model="v1", **spec):
        self.object("POST", "/layaservers", {
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer", "metadata": {"name": name},
            "spec": {"modelRef": {"name": model}, "image": self.options.fault_image,
                     "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
                     "rollout": {"minReadySeconds": 1, "drainSeconds": 5, "rollbackWindowSeconds": 20}, **spec}})

    def policy(self):
        self.object("POST", "/routingpolicies", {
            "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": "default"},
            "spec": {"serverRef": {"name": "main"}}})
        self.until("decisions by the model", lambda: self.decide()[1]["provenance"].get("model") is not None, 120)

    def champion(self):
        return self.status().get("champion", {})

    def rests(self, name="main"):
        """Whether a server serves what it should and nothing is under way."""
        status = self.status(name)
        found = {it["type"]: (it["status"], it["reason"]) for it in status.get("conditions", [])}
        done = found.get("RolledOut", ("", ""))
        # What was taken back stays the wish until it is changed.
        return found.get("Ready", ("",))[0] == "True" and not status.get("candidate") \
            and (done[0] == "True" or done[1] == "Rejected")

    def calm(self):
        """What the next case begins with: the healthy image, and the version that serves is the wish."""
        champion = self.champion()
        self.patch({"modelRef": {"name": champion["model"]}, "image": self.options.fault_image, "replicas": 1,
                    "rollout": {"strategy": "BlueGreen", "rollbackWindowSeconds": 20, "abort": None,
                                # What a case took back may be tried again by the next one.
                                "retry": int(time.time())}})
        self.until("it rests", self.rests, 180)

    def end(self):
        for program in (self.controller, self.router):
            if program:
                program.end()


class Watch(threading.Thread):
    """Asks 20 times a second who answers."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.stopped, self.seen = world, threading.Event(), []

    def run(self):
        while not self.stopped.wait(0.05):
            at = time.monotonic()
            try:
                status, decision = self.world.decide()
                model = (decision.get("provenance") or {}).get("model") if status == 200 else None
                self.seen.append((at, status, model and model["version"]))
            except OSError as error:
                self.seen.append((at, 0, str(error)))

    def end(self):
        self.stopped.set()
        self.join()
        return self.seen


def under_load(world, name, act, systemone=False):
    """Runs the load, does the thing ten seconds into it, and prints what was lost."""
    options = world.options
    base = f"http://127.0.0.1:{world.port}"
    # No more at once than a server takes (`maxConcurrent`, 16), or one that is slow for a moment refuses some, as it should.
    rates = ["--seconds", str(options.seconds), "--connections", "8" if systemone else "16"]
    loads = {"/v1/route": [world.bin("xtask"), "load", f"{base}/v1/route", "--rate", str(options.rate), *rates]}
    if systemone:
        body = os.path.join(world.home, "question.json")
        with open(body, "w", encoding="utf-8") as file:
            json.dump(QUESTION, file)
        loads["/v1/systemone"] = [world.bin("xtask"), "load", f"{base}/v1/systemone", "--body", body, "--rate",
                                  str(options.rate), *rates]
    watch = Watch(world)
    watch.start()
    running = {path: subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
               for path, line in loads.items()}
    time.sleep(min(10, options.seconds / 6))
    began = time.monotonic()
    told = act() or ""
    lost = 0
    for path, load in running.items():
        output = load.communicate()[0].strip()
        lost += load.returncode != 0
        print(f"[{name}] {path}: " + "; ".join(" ".join(line.split()) for line in output.splitlines()))
    seen = watch.end()
    by = {}
    for _, _, version in seen:
        by[version or "rules"] = by.get(version or "rules", 0) + 1
    print(f"[{name}] answered by {by} {told}")
    world.until("it rests", world.rests, 180)
    return lost == 0, began, seen


def case_rollout(world):
    target = "v2" if world.champion()["model"] == "v1" else "v1"

    def act():
        world.patch({"modelRef": {"name": target}})
    good, _, _ = under_load(world, "rollout", act, systemone=True)
    assert world.champion()["model"] == target, world.status()
    return good


def case_rollback(world):
    """A person takes the new version back while it is watched."""
    old = world.champion()["revision"]
    target = "v2" if world.champion()["model"] == "v1" else "v1"

    def act():
        world.patch({"modelRef": {"name": target}, "rollout": {"rollbackWindowSeconds": 300}})
        world.until("it is promoted", lambda: world.champion().get("revision") not in (None, old), 60)
        time.sleep(5)
        world.run("relayctl", "rollout", "abort", "main")
        world.until("it is taken back", lambda: world.champion().get("revision") == old, 60)
    try:
        return under_load(world, "rollback", act, systemone=True)[0]
    finally:
        world.calm()


def case_crash(world):
    """Another image that crashes while it is watched: the way back is the controller's own."""
    image = world.engine.faulty(world.options.fault_image, "crash-in=12000")
    old = world.champion()["revision"]
    found = {}

    def act():
        world.patch({"image": image, "rollout": {"rollbackWindowSeconds": 300}})
        world.until("it is promoted", lambda: world.champion().get("revision") not in (None, old), 60)
        candidate = world.champion()["revision"]
        world.until("it has died", lambda: not world.engine.containers("--filter", f"label=relay.dev/revision={candidate}"), 60)
        found["died"] = time.monotonic()
        world.until("it is taken back", lambda: world.champion().get("revision") == old, 60)
        return f"; taken back {time.monotonic() - found['died']:.1f} s after it died"
    try:
        good, _, seen = under_load(world, "crash", act)
        models = [at for at, _, version in seen if version and at > found["died"]]
        print(f"[crash] first answer of a model {models[0] - found['died']:.1f} s after the candidate died (bar 10 s)")
        return good and models[0] - found["died"] <= 10
    finally:
        world.calm()


def case_drain(world):
    world.patch({"replicas": 2})
    world.until("two replicas", lambda: world.status().get("readyReplicas") == 2 and world.rests(), 60)

    def act():
        world.patch({"replicas": 1})
        world.until("one replica", lambda: world.status().get("readyReplicas") == 1, 60)
        time.sleep(8)
        world.patch({"replicas": 2})
        world.until("two again", lambda: world.status().get("readyReplicas") == 2, 60)
        time.sleep(2)
        world.patch({"replicas": 1})
    return under_load(world, "drain", act, systemone=True)[0]


def case_kill(world):
    def act():
        for _ in range(2):
            one = world.engine.containers("--filter", "label=app.kubernetes.io/component=serving")[0]
            world.engine.told("kill", one)
            time.sleep(12)
    return under_load(world, "kill", act)[0]


def case_engine(world):
    def act():
        world.engine.call("stop")
        time.sleep(3)
        world.engine.call("start")
    return under_load(world, "engine", act)[0]


def case_controller(world):
    target = "v2" if world.champion()["model"] == "v1" else "v1"

    def act():
        world.patch({"modelRef": {"name": target}})
        time.sleep(1.5)
        world.controller.end(signal.SIGKILL)
        time.sleep(2)
        world.start_controller()
    good, _, _ = under_load(world, "controller", act)
    assert world.champion()["model"] == target, world.status()
    return good


def case_gap(world):
    """Replace: the old one is stopped when the candidate dies."""
    image = world.engine.faulty(world.options.fault_image, "crash-in=8000")
    before = world.champion()["revision"]
    world.patch({"image": image, "rollout": {"strategy": "Replace", "rollbackWindowSeconds": 120}})
    world.until("it is promoted", lambda: world.champion().get("revision") not in (None, before), 60)
    watch = Watch(world)
    watch.start()
    world.until("it is taken back", lambda: world.champion().get("revision") == before, 120)
    time.sleep(5)
    answered = [at for at, _, version in watch.end() if version]
    without = max(later - earlier for earlier, later in zip(answered, answered[1:]))
    print(f"[gap] taken back; longest time without an answer of a model {without:.1f} s (bar 10 s)")
    world.calm()
    return without <= 10


def case_idle(world):
    for number in range(19):
        world.serve(f"more-{number}", resources={"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "48Mi"}})
    for number in range(19):
        world.until(f"more-{number} is ready", lambda name=f"more-{number}": world.rests(name), 180)
    world.until("it rests", world.rests, 60)
    time.sleep(30)

    def writes():
        connection = http.client.HTTPConnection("127.0.0.1", world.admin, timeout=5)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines
                   if line.startswith("relay_controller_status_writes_total") and 'result="written"' in line)
    wrote, used, began = writes(), world.controller.processor_seconds(), time.monotonic()
    time.sleep(world.options.seconds)
    share = (world.controller.processor_seconds() - used) / (time.monotonic() - began)
    more, memory = writes() - wrote, world.controller.memory_mb()
    print(f"[idle] 20 servers: {memory:.1f} MB resident (bar 30), {share:.2%} of a core (bar 0.5 %), {more:.0f} writes (bar 0)")
    for number in range(19):
        world.object("DELETE", f"/layaservers/more-{number}")
    return memory <= 30 and share <= 0.005 and more == 0


CASES = {name.removeprefix("case_"): function for name, function in list(globals().items()) if name.startswith("case_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where relayd, relayctl, laya and xtask are")
    parser.add_argument("cases", nargs="*", help=" ".join(CASES))
    parser.add_argument("--laya-image", default="relay-laya-native:latest")
    parser.add_argument("--fault-image", default="relay-fault:latest")
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--engines", default=os.path.expanduser("~/.cache/relay-engines/bars"))
    parser.add_argument("--keep", action="store_true", help="leave the home for a look")
    options = parser.parse_args()
    options.folder = os.path.abspath(options.folder)
    engine = Engine(options.engines, [options.laya_image, options.fault_image])
    engine.clean()
    home = tempfile.mkdtemp(prefix="relay-bars-")
    world, missed = None, []
    try:
        world = World(options, engine, home)
        world.serve()
        world.policy()
        world.until("it rests", world.rests, 120)
        for name in options.cases or CASES:
            if not CASES[name](world):
                missed.append(name)
    finally:
        if world:
            world.end()
        engine.clean()
        engine.call("stop")
        if not options.keep:
            shutil.rmtree(home, ignore_errors=True)
        else:
            print(f"home: {home}")
    sys.exit(f"missed: {', '.join(missed)}" if missed else 0)


main()
