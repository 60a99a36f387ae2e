"""What the memory is, on a stand-in for torch's objects; tests/torch/test_categories.py has the real ones."""
import gc
import sys
import types
import weakref

import pytest

from vramtrack import categories


class Storage:
    def __init__(self, address, size):
        self.address, self.size = address, size

    def data_ptr(self):
        return self.address

    def nbytes(self):
        return self.size


class Tensor:
    is_leaf = True

    def __init__(self, address, size=512, is_cuda=True, grad=None):
        self.storage, self.is_cuda, self.grad = Storage(address, size), is_cuda, grad

    def untyped_storage(self):
        return self.storage

    def get_device(self):
        return 0


class Sparse(Tensor):
    def untyped_storage(self):
        raise NotImplementedError("no storage")


class Sharded:
    is_leaf, grad = True, None

    def __init__(self, local):
        self._local = local

    def __tensor_flatten__(self):
        return ["_local"], None


class Module:
    def __init__(self, modules=None, buffers=None, **parameters):
        self._parameters, self._buffers, self._modules = parameters, buffers or {}, modules or {}


class Optimizer:
    def __init__(self, params, state=None, **group):
        self.param_groups, self.state = [{"params": params, **group}], state or {}


@pytest.fixture
def torch(monkeypatch):
    """With the hooks of PyTorch, and an allocator that says 9000 bytes."""
    module = types.ModuleType("torch")
    hooks = {}
    registered = types.SimpleNamespace(
        register_module_parameter_registration_hook=lambda hook: hooks.__setitem__("parameter", hook),
        register_module_module_registration_hook=lambda hook: hooks.__setitem__("module", hook),
    )
    module.nn = types.SimpleNamespace(Module=Module, modules=types.SimpleNamespace(module=registered))
    stepped = types.SimpleNamespace(register_optimizer_step_post_hook=lambda hook: hooks.__setitem__("step", hook))
    module.optim = types.SimpleNamespace(Optimizer=Optimizer, optimizer=stepped)
    module.cuda = types.SimpleNamespace(is_initialized=lambda: True, device_count=lambda: 1, memory_allocated=lambda device: 9000)
    module.hooks = hooks
    monkeypatch.setitem(sys.modules, "torch", module)
    for name in ("_modules", "_optimizers", "_caches"):
        monkeypatch.setattr(categories, name, weakref.WeakSet())
    for name, value in (("_hooked", False), ("_next_look", 0.0), ("_next_search", 0.0)):
        monkeypatch.setattr(categories, name, value)
    return module


def named(found):
    return {label.name: (label.category, label.bytes) for label in found.labels}


def test_parameters_gradients_and_state_have_names(torch):
    weight = Tensor(1, 1000, grad=Tensor(2, 1000))
    head = Tensor(3, 100)
    net = Module({"layer": Module(weight=weight), "again": Module(weight=weight), "none": None}, {"mean": Tensor(4, 10)}, head=head)
    optimizer = Optimizer([weight, head, Tensor(9, 7)], {weight: {"exp_avg": Tensor(5, 1000), "step": Tensor(6, 4, is_cuda=False)},
                                                         "shared": [Tensor(7, 30), (Tensor(8, 31),)]}, lr=Tensor(10, 4))  # fmt: skip
    found = categories.categorize()
    assert named(found) == {
        "Module.head": ("weights", 100), "Module.mean": ("weights", 10), "Module.layer.weight": ("weights", 1000),
        "Optimizer.params.2": ("weights", 7), "Module.layer.weight.grad": ("gradients", 1000),
        "Module.layer.weight.exp_avg": ("optimizer_state", 1000), "shared.state.0": ("optimizer_state", 30),
        "shared.state.1.0": ("optimizer_state", 31), "Optimizer.lr": ("optimizer_state", 4),
    }  # fmt: skip
    assert found.by_category == {"weights": 1117, "optimizer_state": 1065, "gradients": 1000, "other": 9000 - 3182}
    assert found.bytes_of("gradients") == 1000 and "optimizer state" in str(found)
    assert categories.labels_for_snapshot(found)[0].keys() == {"address", "category", "name"}
    del net, optimizer


def test_a_storage_counts_once_and_what_has_none_does_not(torch):
    shared = Tensor(1, 64)
    view = Tensor(1, 64)
    net = Module(a=shared, b=view, c=Sparse(2), d=Sharded(Tensor(3, 9)), e=Tensor(0), f=None)
    assert named(categories.categorize()) == {"Module.a": ("weights", 64), "Module.d": ("weights", 9)}
    del net


def test_two_models_of_one_class(torch):
    nets = [Module(a=Tensor(1)), Module(a=Tensor(2))]
    assert sorted(named(categories.categorize())) == ["Module#2.a", "Module.a"]
    del nets


def test_caches(torch):
    cls = type("DynamicCache", (), {"__module__": "transformers.cache_utils"})
    runner = type("GPUModelRunner", (), {"__module__": "vllm.v1.worker.gpu_model_runner"})
    cache, served = cls(), runner()
    cache.key_cache = [Tensor(1, 20), Tensor(2, 20)]
    served.kv_caches, served.buffer = [Tensor(3, 500)], Tensor(4)
    assert named(categories.categorize()) == {"DynamicCache.key_cache.0": ("kv_cache", 20), "DynamicCache.key_cache.1": ("kv_cache", 20),
                                              "GPUModelRunner.kv_caches.0": ("kv_cache", 500)}  # fmt: skip


def test_nothing_is_kept_alive(torch):
    net = Module(a=Tensor(1))
    optimizer = Optimizer([net._parameters["a"]])
    found = categories.categorize()
    gone = [weakref.ref(net), weakref.ref(optimizer), weakref.ref(net._parameters["a"])]
    del net, optimizer
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3 and len(found.labels) == 1
    assert categories.categorize().labels == ()


def test_what_is_made_later_needs_no_search(torch, monkeypatch):
    categories.attach()
    told = []
    monkeypatch.setattr(categories, "_label", lambda *label: told.append(label))
    categories.look_now_and_then()  # with the only search
    monkeypatch.setattr(categories, "search", lambda: pytest.fail("searched again"))
    net = Module(a=Tensor(1))
    torch.hooks["parameter"](net, "a", None)
    optimizer = Optimizer([net._parameters["a"]], {net._parameters["a"]: {"momentum_buffer": Tensor(2)}})
    torch.hooks["step"](optimizer, (), {})
    categories.look_now_and_then()
    assert told == [], "once a second"
    monkeypatch.setattr(categories, "_next_look", 0.0)
    categories.look_now_and_then()
    assert told == [(1, b"weights", b"Module.a"), (2, b"optimizer_state", b"Module.a.momentum_buffer")]


def test_an_error_does_not_reach_the_program(torch, monkeypatch):
    monkeypatch.setattr(categories, "search", lambda: 1 / 0)
    categories.look_now_and_then()
    assert categories._next_look > 0


def test_cuda_is_not_started(torch):
    torch.cuda.is_initialized = lambda: False
    assert categories.categorize() == ((), 0, 0.0)
