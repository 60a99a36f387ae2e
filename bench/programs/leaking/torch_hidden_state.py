"""A recurrent model over one endless text. The state continues from chunk to chunk, with the graph of all chunks before."""
import torch

w_in = torch.nn.Parameter(torch.ones(16, 1024, device="cuda"))
w_state = torch.nn.Parameter(torch.ones(1024, 1024, device="cuda"))
state = torch.zeros(64, 1024, device="cuda")
for chunk in range(250):
    x = torch.randn(64, 16, device="cuda")
    state = torch.tanh(x @ w_in + state @ w_state)  # LEAK HERE
print(state.sum().item())
