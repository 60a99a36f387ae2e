"""A list, a dictionary and a deque."""
import collections
import time
from tensors import T

images = []
captions = {}
scores = collections.deque()


def evaluate(number):
    T(1 << 17)
    images.append(T(1 << 14))
    captions[f"image {number}"] = T(1 << 12)
    scores.append(T(1 << 10))


for number in range(400):
    evaluate(number)
    time.sleep(0.003)
# KEPT BY images
# KEPT BY captions
# KEPT BY scores
