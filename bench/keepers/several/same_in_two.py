"""The same tensors in a list and in a dictionary: whoever empties one of them frees nothing."""
import time
from tensors import T

ordered, by_name = [], {}
for number in range(400):
    T(1 << 16)
    tensor = T(1 << 13)
    ordered.append(tensor)
    by_name[number] = tensor
    time.sleep(0.003)
# KEPT BY ordered|by_name
