"""What the mini sends for two layers of one input, and for a layer of its GPT."""

import torch
from torch.autograd.graph import saved_tensors_hooks

from mini_impls.model import GPTConfig, build_model, make_batch
from mini_impls.offload import HostLink
from mini_impls.offload_activations import ActivationOffload, save_on_host

RANKS = 1
UPSTREAMS = ["minis"]


class Counted(HostLink):
    copies = 0

    def start(self, source, way, into=None):
        self.copies += way == "to host"
        return super().start(source, way, into)


layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(2))
x, handed = torch.ones(3, 4, requires_grad=True), []
plain, by_part = Counted(torch.device("cpu")), Counted(torch.device("cpu"))
ways = {
    "torch": saved_tensors_hooks(handed.append, lambda packed: packed),
    "plain": save_on_host(plain),
    "by_part": ActivationOffload(by_part, layers.parameters()).part(),
}
for way in ways.values():
    with way:
        layers[0](x) + layers[1](x)
print("torch =", len(handed))
print("plain =", plain.copies)
print("by_part =", by_part.copies)
gpt, link = build_model(GPTConfig()), HostLink(torch.device("cpu"))
hidden = gpt.embedding(make_batch(GPTConfig(), step=0, batch_size=8)[0])
with ActivationOffload(link, gpt.parameters()).part():
    gpt.layers[0](hidden)
print("layer_over_hidden =", link.moved["to host"] / hidden.nbytes)
