#!/usr/bin/env python3
"""Leaks, or merely caches, GPU memory on purpose with PyTorch: a training loop whose truth is known.

    leak_pytorch.py [--shape graph|list|none|cache] [--step-mib 32] [--period-s 1] [--cap-mib 4096] [--hold-s 60]

graph  keeps every step's loss tensor, and with it the step's whole graph: the classic leak
list   appends a tensor of --step-mib to a list
none   the same loop without keeping anything: healthy
cache  tensors of changing sizes, freed: only the allocator's cache grows, and stops

Prints one line a step: seconds, MiB allocated, MiB reserved. Exit 77: no PyTorch or no GPU here.
"""
import argparse
import sys
import time


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=["graph", "list", "none", "cache"], default="graph")
    parser.add_argument("--step-mib", type=int, default=32)
    parser.add_argument("--period-s", type=float, default=1.0)
    parser.add_argument("--cap-mib", type=int, default=4096)
    parser.add_argument("--hold-s", type=float, default=60.0)
    parser.add_argument("--steps", type=int, default=300, help="end of the shapes that do not grow to the cap")
    args = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"leak_pytorch: {error}", file=sys.stderr)
        return 77
    if not torch.cuda.is_available():
        print("leak_pytorch: PyTorch sees no GPU", file=sys.stderr)
        return 77

    mib = 1 << 20
    width = 1024
    rows = max(1, args.step_mib * mib // (4 * width))
    weight = torch.randn(width, width, device="cuda", requires_grad=True)
    kept = []
    start = time.monotonic()
    for step in range(args.steps):
        if args.shape == "list":
            kept.append(torch.ones(args.step_mib * mib, dtype=torch.uint8, device="cuda"))
        elif args.shape == "cache":
            torch.ones((1 + step * 7 % 40) * args.step_mib * mib // 40, dtype=torch.uint8, device="cuda")
        else:
            activation = torch.tanh(torch.randn(rows, width, device="cuda") @ weight)
            loss = activation.square().mean()
            if args.shape == "graph":
                kept.append(loss)  # the defect: loss.item() would keep a number, this keeps the graph
        allocated = torch.cuda.memory_allocated() // mib
        reserved = torch.cuda.memory_reserved() // mib
        print(f"{time.monotonic() - start:.1f} s  {allocated} MiB  {reserved} MiB", flush=True)
        if reserved + args.step_mib > args.cap_mib:
            break
        time.sleep(args.period_s)
    time.sleep(args.hold_s)
    return 0


if __name__ == "__main__":
    sys.exit(main())
