"""The bars of `laya fetch`: its speed against `curl -o` from the same loopback server (at least 0.7 of it), and its memory
(at most 64 MB resident for a 640 MB checkpoint whose tokenizer is tiny).

    python3 tests/bench/fetch.py --laya target/release/laya [--shape mmbert-base] [--rounds 3] [--dir DIR]

Prints one JSON object and ends with 1 if a bar is missed. curl does not sync what it writes and fetch does, so the time of
`curl` with a `sync` behind it is told beside it; the bar is the stricter one, without."""

import argparse
import hashlib
import http.server
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RATIO_BAR = 0.7
MEMORY_BAR_BYTES = 64_000_000


class Files(http.server.BaseHTTPRequestHandler):
    """Serves a folder with sendfile, so that the server is not what is measured."""

    protocol_version = "HTTP/1.1"
    root = None

    def do_GET(self):
        path = self.root / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        size, start = path.stat().st_size, 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("range", ""))
        if asked:
            start = int(asked.group(1))
            self.send_response(206)
            self.send_header("content-range", f"bytes {start}-{size - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("content-length", str(size - start))
        self.end_headers()
        self.wfile.flush()
        with path.open("rb") as file:
            while start < size:
                start += os.sendfile(self.connection.fileno(), file.fileno(), start, size - start)

    def log_message(self, *_):
        pass


def serve(root, ready):
    Files.root = root
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    ready.put(server.server_address[1])
    server.serve_forever()


def manifest_of(root, url):
    files = []
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        files.append({"path": str(path.relative_to(root)), "size": path.stat().st_size, "sha256": digest.hexdigest()})
    return {"baseUrl": url, "files": files}


def run(command):
    """Seconds and peak resident bytes of a command that must succeed."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]} ended with {process.returncode}:\n{output.decode(errors='replace')[-2000:]}")
    return seconds, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--laya", required=True)
    parser.add_argument("--shape", default="mmbert-base")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", help="where to work; its file system is what is written to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as base:
        measure(arguments, pathlib.Path(base))


def measure(arguments, base):
    source = base / "source"
    run([arguments.laya, "random-checkpoint", str(source), "--shape", arguments.shape])
    ready = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(source, ready), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{ready.get(timeout=10)}/"
        manifest = manifest_of(source, url)
        (base / "manifest.json").write_text(json.dumps(manifest))
        fetches, curls, synced, memory = [], [], [], 0
        for number in range(arguments.rounds + 1):
            os.sync()
            models = base / f"models-{number}"
            seconds, resident = run([arguments.laya, "fetch", "--result-file", str(base / "result.json"), "--models", str(models), "--manifest", str(base / "manifest.json")])
            shutil.rmtree(models)
            os.sync()
            target = base / f"curl-{number}"
            command = ["curl", "-sS", "--fail", "--create-dirs"]
            for file in manifest["files"]:
                command += ["-o", str(target / file["path"]), url + file["path"]]
            curl, _ = run(command)
            began = time.perf_counter()
            os.sync()
            sync = time.perf_counter() - began
            shutil.rmtree(target)
            # The first round fills the page cache with the source.
            if number > 0:
                fetches.append(seconds)
                curls.append(curl)
                synced.append(curl + sync)
                memory = max(memory, resident)
    finally:
        server.terminate()
        server.join()
    size = sum(file["size"] for file in manifest["files"])
    fetch, curl = statistics.median(fetches), statistics.median(curls)
    result = {
        "bytes": size,
        "fetch_seconds": round(fetch, 3),
        "fetch_bytes_per_second": round(size / fetch),
        "curl_seconds": round(curl, 3),
        "curl_and_sync_seconds": round(statistics.median(synced), 3),
        "ratio": round(curl / fetch, 3),
        "ratio_to_curl_and_sync": round(statistics.median(synced) / fetch, 3),
        "ratio_bar": RATIO_BAR,
        "resident_bytes": memory,
        "resident_bar_bytes": MEMORY_BAR_BYTES,
    }
    result["passed"] = result["ratio"] >= RATIO_BAR and memory <= MEMORY_BAR_BYTES
    print(json.dumps(result, indent=2))
    sys.exit(0 if result["passed"] else 1)


if __name__ == "__main__":
    main()
