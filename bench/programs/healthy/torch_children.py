"""A process for each of six jobs, one after the other. Each takes memory, keeps it to its end, and is gone."""
import torch
import torch.multiprocessing as mp


def job(number):
    kept = [torch.zeros(256, 1024, device="cuda") for _ in range(5)]
    for _ in range(20):
        kept[0] = torch.randn(256, 1024, device="cuda") + number


if __name__ == "__main__":
    context = mp.get_context("spawn")
    model = torch.zeros(1024, 1024, device="cuda")
    for number in range(6):
        child = context.Process(target=job, args=(number,))
        child.start()
        child.join()
