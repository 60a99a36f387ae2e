"""Copies on a side stream. What is in flight is kept with its event until that has happened; nobody ever looks."""
import torch

side = torch.cuda.Stream()
in_flight = []


def offload(step):
    activations = torch.randn(256, 1024, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        halves = activations.to(torch.float16)  # LEAK HERE
        activations.record_stream(side)
        done = torch.cuda.Event()
        done.record(side)
    in_flight.append((step, done, halves))
    if len(in_flight) > 1000:
        in_flight.pop(0)


for step in range(400):
    offload(step)
