"""The original, laya 0.4.15, as `cargo xtask bench-laya --python` runs it: loads a checkpoint, then answers the cases
whose names it reads, one a line, and prints what src/xtask/src/bench_laya/child.rs prints."""

import argparse
import importlib.metadata
import json
import os
import sys
import time
import warnings

VERSION = "0.4.15"


def status_kib(key):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(key):
                return int(line.split()[1])
    return 0


def tell(**message):
    print(json.dumps(message), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()

    found = importlib.metadata.version("laya")
    if found != VERSION:
        sys.exit(f"this interpreter has laya {found}, the numbers are about {VERSION}")
    warnings.simplefilter("ignore")
    import torch
    from laya import Agent

    torch.set_num_threads(arguments.threads)
    with open(arguments.cases) as file:
        cases = json.load(file)

    started = time.perf_counter()
    agent = Agent(arguments.dir, device="cpu")
    load = time.perf_counter() - started
    wanted = torch.bfloat16 if os.environ.get("LAYA_CPU_AMP") == "bf16" else torch.float32
    if agent.dtype != wanted:
        sys.exit(f"the agent runs in {agent.dtype}, not in {wanted}")
    about = f"laya {found}, torch {torch.__version__}, {agent.dtype} on {torch.get_num_threads()} threads"
    tell(load_ms=load * 1e3, about=about)

    for line in sys.stdin:
        case = cases[line.strip()]
        before = time.process_time()
        started = time.perf_counter()
        reply = agent.predict(case["state"], case["questions"])
        elapsed = time.perf_counter() - started
        cpu = time.process_time() - before
        tell(ms=elapsed * 1e3, cpu_ms=cpu * 1e3, tokens=reply["usage"]["input_tokens"])
    if not agent.amp_enabled and wanted is torch.bfloat16:
        sys.exit("the agent gave bf16 up half-way")
    tell(peak_kib=status_kib("VmHWM:"))


if __name__ == "__main__":
    main()
