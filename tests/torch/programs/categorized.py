"""Trains, and writes at several moments of it snapshots and what torch's own objects hold; test_categories.py compares.

    categorized.py SITUATION FOLDER
"""
import json
import pathlib
import sys

import torch
import vramtrack
from torch import nn

SITUATIONS = {}
folder = pathlib.Path(sys.argv[2])
moments = []


def situation(function):
    SITUATIONS[function.__name__] = function
    return function


def storages(tensors):
    return {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors if tensor is not None and tensor.is_cuda}


def moment(net, optimizer, name):
    """Bytes of distinct storages, as the program asked for them and as blocks of the allocator."""
    state = [value for its in optimizer.state.values() for value in its.values() if torch.is_tensor(value)]
    kinds = {
        "weights": storages([*net.parameters(), *net.buffers()]),
        "gradients": storages([parameter.grad for parameter in net.parameters()]),
        "optimizer_state": storages(state),
    }
    blocks = {}
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            blocks[address] = block["size"]
            address += block["size"]
    path = folder / f"{len(moments)}-{name}"
    torch.cuda.memory._dump_snapshot(f"{path}.stacks.pickle")
    found = vramtrack.dump_snapshot(f"{path}.told.pickle")
    vramtrack.mark("step")
    moments.append({
        "name": path.name,
        "bytes": {kind: sum(sizes.values()) for kind, sizes in kinds.items()},
        "block_bytes": {kind: sum(blocks[address] for address in sizes) for kind, sizes in kinds.items()},
        "found": found.by_category,
        "names": sorted(label.name for label in found.labels),
        "allocated": torch.cuda.memory_allocated(),
    })  # fmt: skip
    (folder / "moments.json").write_text(json.dumps(moments))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 256))
        self.tied = nn.Linear(256, 256)
        self.again = self.tied

    def forward(self, batch):
        return self.again(self.tied(self.layers(batch)))


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
        self.head = nn.Linear(256, 1000)

    def forward(self, batch):
        return self.head(self.layer(batch) * 2)


def train(net, optimizer, shape, accumulate=1, set_to_none=True):
    for step in range(3):
        for _ in range(accumulate):
            batch = torch.randn(*shape).to("cuda")
            out = net(batch)
            loss = nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), torch.zeros(out.numel() // out.shape[-1], dtype=torch.long).to("cuda"))
            if step:
                moment(net, optimizer, "forward")
            loss.backward()
        if step:
            moment(net, optimizer, "backward")
        optimizer.step()
        moment(net, optimizer, "step")
        optimizer.zero_grad(set_to_none=set_to_none)
    moment(net, optimizer, "zeroed")
    return net, optimizer, batch


@situation
def sgd():
    net = Net().cuda()
    return train(net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), (64, 256))


@situation
def adam():
    net = Net().to("cuda")
    return train(net, torch.optim.Adam(net.parameters(), foreach=False), (64, 256), set_to_none=False)


@situation
def adam_foreach():
    net = Net().cuda()
    return train(net, torch.optim.Adam(net.parameters(), foreach=True, amsgrad=True), (64, 256))


@situation
def transformer():
    net = Translator().cuda()
    return train(net, torch.optim.AdamW(net.parameters()), (16, 32, 256))


@situation
def accumulation():
    net = Translator().cuda()
    return train(net, torch.optim.Adam(net.parameters()), (8, 32, 256), accumulate=3)


@situation
def closure():
    """The optimizer calls forward and backward."""
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())

    def once():
        optimizer.zero_grad()
        batch = torch.randn(64, 256).to("cuda")
        loss = net(batch).square().mean()
        moment(net, optimizer, "forward")
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(once)
        moment(net, optimizer, "step")
    return net, optimizer, torch.randn(64, 256).to("cuda")


torch.cuda.memory._record_memory_history()
net, optimizer, batch = SITUATIONS[sys.argv[1]]()
out = net(batch)  # what a trace shows is the moment before all is released: now
