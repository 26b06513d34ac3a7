"""In which order the second step of DDP reaches a layer in the middle."""

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
dist.init_process_group("gloo")
layers = [torch.nn.Linear(256, 256, bias=False) for _ in range(6)]
model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.5)
optimizer, seen, sent = torch.optim.SGD(model.parameters(), 0.1), [], []


def note(what):
    return lambda *_: seen.append(what)


def reduce(state, bucket):
    middle = any(each is layers[3].weight for each in bucket.parameters())
    seen.extend(["all_reduce"] if middle else [])
    sent.append(dist.all_reduce(bucket.buffer(), async_op=True).get_future())
    return sent[-1].then(lambda future: future.value()[0])


layers[3].register_forward_hook(note("forward"))
layers[4].register_full_backward_hook(note("backward of the next"))
for at, what in ((3, "gradient"), (2, "last gradient"), (1, "earlier gradient")):
    layers[at].weight.register_post_accumulate_grad_hook(note(what))
optimizer.register_step_pre_hook(note("step"))
model.register_comm_hook(None, reduce)
for _ in range(2):
    seen.clear(), sent.clear()
    model(torch.ones(1, 256)).sum().backward()
    seen.append(f"backward ends, {sum(each.done() for each in sent)} of {len(sent)}")
    optimizer.step()
if dist.get_rank() == 0:
    print("order =", json.dumps(seen))
dist.destroy_process_group()
