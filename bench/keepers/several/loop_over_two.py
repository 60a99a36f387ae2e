"""One line in a loop over two lists: the call path is the same for both."""
import time
from tensors import T

train_history, test_history = [], []
for _ in range(350):
    T(1 << 16)
    for history in (train_history, test_history):
        history.append(T(1 << 12))
    time.sleep(0.003)
# KEPT BY train_history
# KEPT BY test_history
