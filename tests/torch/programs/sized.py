"""Runs language models through torch's own allocator, and says what each needed; test_fit.py compares it with `vramtrack fit`.

    sized.py CASES.json FOLDER      one JSON line for each case; FOLDER/NAME gets its config.json, and with "files" its weights' header

The modules are those of transformers' decoders (Llama, Mistral, Qwen, Gemma), with PyTorch's attention. A case serves or trains:

    chunk       tokens that are computed at a time while prompts are read into a cache of the whole context and batch
    train       optimizer, precision and checkpoints, as --train takes them
    master      mixed precision by a copy of the weights in 32 bits instead of by autocast
    fused       the kernels that do at once what takes several otherwise: a norm, a step of the optimizer, attention with fewer keys
                than queries; without it, as transformers and PyTorch's optimizers do by default
"""
import json
import pathlib
import struct
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
CODES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}


class Norm(nn.Module):
    """As transformers has it: every intermediate result in 32 bits."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, hidden):
        wide = hidden.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(hidden.dtype)


def rotated(states, cosine, sine):
    half = states.shape[-1] // 2
    turned = torch.cat((-states[..., half:], states[..., :half]), dim=-1)
    return states * cosine + turned * sine


class Attention(nn.Module):
    def __init__(self, config, norm):
        super().__init__()
        width, self.size = config["hidden_size"], config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
        self.heads, self.kept = config["num_attention_heads"], config["num_key_value_heads"]
        self.repeats = norm is Norm and self.heads != self.kept
        bias = config["model_type"] == "qwen2"
        self.q_proj = nn.Linear(width, self.heads * self.size, bias=bias)
        self.k_proj = nn.Linear(width, self.kept * self.size, bias=bias)
        self.v_proj = nn.Linear(width, self.kept * self.size, bias=bias)
        self.o_proj = nn.Linear(self.heads * self.size, width, bias=False)
        self.q_norm, self.k_norm = (norm(self.size), norm(self.size)) if config["model_type"] == "qwen3" else (None, None)

    def forward(self, hidden, cosine, sine, cache):
        rows, tokens, _ = hidden.shape
        query, key, value = (project(hidden).view(rows, tokens, -1, self.size) for project in (self.q_proj, self.k_proj, self.v_proj))
        if self.q_norm:
            query, key = self.q_norm(query), self.k_norm(key)
        query, key, value = (states.transpose(1, 2) for states in (query, key, value))
        query, key = rotated(query, cosine, sine), rotated(key, cosine, sine)
        if cache:
            keys, values, end = cache
            keys[:, :, end - tokens : end].copy_(key)
            values[:, :, end - tokens : end].copy_(value)
            key, value = keys[:, :, :end], values[:, :, :end]
        elif self.repeats:
            key, value = (states.repeat_interleave(self.heads // self.kept, 1) for states in (key, value))
        grouped = query.shape[1] != key.shape[1]
        out = functional.scaled_dot_product_attention(query, key, value, is_causal=tokens > 1, enable_gqa=grouped)
        return self.o_proj(out.transpose(1, 2).reshape(rows, tokens, -1))


class Gated(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, wide = config["hidden_size"], config["intermediate_size"]
        self.gate_proj, self.up_proj = nn.Linear(width, wide, bias=False), nn.Linear(width, wide, bias=False)
        self.down_proj = nn.Linear(wide, width, bias=False)
        self.act = functional.gelu if config["model_type"] == "gemma" else functional.silu

    def forward(self, hidden):
        return self.down_proj(self.act(self.gate_proj(hidden)) * self.up_proj(hidden))


class Layer(nn.Module):
    def __init__(self, config, norm):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = norm(config["hidden_size"]), norm(config["hidden_size"])
        self.self_attn, self.mlp = Attention(config, norm), Gated(config)

    def forward(self, hidden, cosine, sine, cache=None):
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), cosine, sine, cache)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class Decoder(nn.Module):
    def __init__(self, config, norm):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config, norm) for _ in range(config["num_hidden_layers"]))
        self.norm = norm(config["hidden_size"])


class Model(nn.Module):
    def __init__(self, config, fused):
        super().__init__()
        self.model = Decoder(config, nn.RMSNorm if fused else Norm)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        if config["tie_word_embeddings"]:
            self.lm_head.weight = self.model.embed_tokens.weight
        self.checkpoints = False

    def forward(self, tokens, caches=None, end=0):
        """Scores of each token; with caches, of the last one of each sequence."""
        hidden = self.model.embed_tokens(tokens)
        size = self.model.layers[0].self_attn.size
        cosine, sine = hidden.new_ones(tokens.shape[1], size), hidden.new_zeros(tokens.shape[1], size)
        for number, layer in enumerate(self.model.layers):
            if self.checkpoints:
                hidden = checkpoint(layer, hidden, cosine, sine, use_reentrant=False)
            else:
                hidden = layer(hidden, cosine, sine, (*caches[number], end) if caches else None)
        hidden = self.model.norm(hidden)
        return self.lm_head(hidden[:, -1:] if caches else hidden)


def write(folder, config, model, files):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    if not files:
        return
    header, end = {}, 0
    for name, parameter in model.named_parameters():
        begin, end = end, end + parameter.numel() * TYPES[config["torch_dtype"]].itemsize
        header[name] = {"dtype": CODES[config["torch_dtype"]], "shape": list(parameter.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + end)  # a hole: nobody reads the weights


def peaks(begin):
    return {"peak": torch.cuda.max_memory_allocated() - begin, "reserved": torch.cuda.max_memory_reserved()}


@torch.no_grad()
def serve(model, case, begin):
    config, batch, context = case["config"], case["batch"], case["context"]
    weights = torch.cuda.memory_allocated() - begin
    attention = model.model.layers[0].self_attn
    shape, kind = (batch, attention.kept, context, attention.size), TYPES[config["torch_dtype"]]
    caches = [(torch.empty(shape, dtype=kind, device="cuda"), torch.empty(shape, dtype=kind, device="cuda")) for _ in model.model.layers]
    cache = torch.cuda.memory_allocated() - begin - weights
    rows, step = max(1, min(batch, case["chunk"] // context)), min(case["chunk"], context)
    torch.cuda.reset_peak_memory_stats()
    for first in range(0, batch, rows):
        some = [(keys[first : first + rows], values[first : first + rows]) for keys, values in caches]
        for end in range(step, context + 1, step):
            model(torch.zeros(len(some[0][0]), step, dtype=torch.long, device="cuda"), some, end).float().argmax(-1)
    model(torch.zeros(batch, 1, dtype=torch.long, device="cuda"), caches, context).float().argmax(-1)
    return {"weights": weights, "cache": cache, **peaks(begin)}


def train(model, case, begin):
    words = case["train"].split(",")
    mixed = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(words[1])
    model.checkpoints = "checkpoints" in words
    weights = list(model.parameters())
    masters = [weight.detach().float() for weight in weights] if case.get("master") else weights
    fused = {"fused": True} if case.get("fused") else {}
    optimizer = {
        "adamw": lambda: torch.optim.AdamW(masters, **fused),
        "adam": lambda: torch.optim.Adam(masters, **fused),
        "sgd": lambda: torch.optim.SGD(masters, lr=0.1, **fused),
        "momentum": lambda: torch.optim.SGD(masters, lr=0.1, momentum=0.9, **fused),
    }[words[0]]()
    scaler = torch.amp.GradScaler(enabled=words[1] == "fp16")
    for step in range(3):
        if step == 1:  # before that the optimizer has no state
            torch.cuda.reset_peak_memory_stats()
        tokens = torch.zeros(case["batch"], case["context"], dtype=torch.long, device="cuda")
        with torch.autocast("cuda", dtype=mixed, enabled=bool(mixed) and not case.get("master")):
            scores = model(tokens)
            loss = functional.cross_entropy(scores.float().flatten(0, 1), tokens.flatten())
            del scores
        scaler.scale(loss).backward()
        gradients = sum(weight.grad.nbytes for weight in weights)
        if case.get("master"):
            for weight, master in zip(weights, masters):
                master.grad, weight.grad = weight.grad.float(), None
        scaler.step(optimizer)
        scaler.update()
        state = sum(value.nbytes for its in optimizer.state.values() for value in its.values() if torch.is_tensor(value) and value.is_cuda)
        if case.get("master"):
            with torch.no_grad():
                torch._foreach_copy_(weights, masters)
        optimizer.zero_grad()
    kept = {"weights": sum(weight.nbytes for weight in weights), "masters": sum(master.nbytes for master in masters)}
    return {**kept, "gradients": gradients, "state": state, **peaks(begin)}


def measure(case, folder):
    config = case["config"]
    words = case.get("train", "").split(",")
    wide = len(words) > 1 and (words[1] == "fp32" or words[1] in ("bf16", "fp16") and not case.get("master"))
    torch.set_default_dtype(torch.float32 if wide else TYPES[config["torch_dtype"]])
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    begin = torch.cuda.memory_allocated()
    with torch.device("cuda"):
        model = Model(config, case.get("fused", False))
    write(folder / case["name"], config, model, case.get("files", False))
    return (train if "train" in case else serve)(model, case, begin)


torch.backends.cuda.enable_cudnn_sdp(False)
torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")  # the workspace of cuBLAS stays, and is not a model's
for case in json.loads(pathlib.Path(sys.argv[1]).read_text()):
    print(json.dumps({"name": case["name"], **measure(case, pathlib.Path(sys.argv[2]))}), flush=True)
