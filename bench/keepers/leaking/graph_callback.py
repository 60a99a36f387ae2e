"""A callback that remembers the loss of each step."""
import time
from tensors import T


class Callback:
    pass


class LossRecorder(Callback):
    def on_step_end(self, state):
        state.setdefault("losses", []).append(state["loss"])


def fit(callbacks):
    state = {}
    for _ in range(360):
        state["loss"] = T(512, T(1 << 16))
        time.sleep(0.004)
        for callback in callbacks:
            callback.on_step_end(state)


fit([LossRecorder()])
# KEPT BY losses
