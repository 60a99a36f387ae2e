"""A recurrent model over one endless text. The state is detached after each chunk; chunks grow longer, up to 32."""
import torch

w_in = torch.nn.Parameter(torch.ones(16, 512, device="cuda"))
w_state = torch.nn.Parameter(torch.ones(512, 512, device="cuda"))
optimizer = torch.optim.Adam([w_in, w_state])
state = torch.zeros(64, 512, device="cuda")
for chunk in range(120):
    state = state.detach()
    for token in range(min(4 + chunk // 2, 32)):
        x = torch.randn(64, 16, device="cuda")
        state = torch.tanh(x @ w_in + state @ w_state)
    state.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
