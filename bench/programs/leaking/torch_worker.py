"""Preprocesses in a worker process. It remembers all images that it has augmented."""
import torch
import torch.multiprocessing as mp

seen = []


def augment(image):
    return image.flip(0)


def work(jobs, answers):
    for number in iter(jobs.get, None):
        image = torch.zeros(3, 256, 256, device="cuda")
        flipped = augment(image)
        bright = flipped + 0.1  # LEAK HERE
        seen.append(bright)
        answers.put(number)


if __name__ == "__main__":
    context = mp.get_context("spawn")
    jobs, answers = context.Queue(), context.Queue()
    worker = context.Process(target=work, args=(jobs, answers), name="augmenter")
    worker.start()
    model = torch.zeros(1024, 1024, device="cuda")
    for number in range(150):
        jobs.put(number)
        answers.get(timeout=120)
    jobs.put(None)
    worker.join()
