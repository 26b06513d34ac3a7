"""Into how many buckets the cap of DDP cuts the fp32 gradients of Llama 2 7B."""

import torch
import torch.distributed as dist
from torch.nn.parallel import distributed as ddp

RANKS = 1

HIDDEN, INNER, WORDS, LAYERS = 4096, 11008, 32000, 32
ATTENTION = [(HIDDEN, HIDDEN)] * 4
MLP = [(INNER, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER)]
LAYER = [*ATTENTION, *MLP, (HIDDEN,), (HIDDEN,)]
SHAPES = [(WORDS, HIDDEN), *LAYER * LAYERS, (HIDDEN,), (WORDS, HIDDEN)]

weights = [torch.empty(shape, device="meta") for shape in reversed(SHAPES)]
caps = [dist._DEFAULT_FIRST_BUCKET_BYTES, ddp._DEFAULT_BUCKET_CAP_MB * 1024 * 1024]
buckets, _ = dist._compute_bucket_assignment_by_size(weights, caps)
print("buckets =", len(buckets))
print("matrices =", sum(len(shape) == 2 for shape in SHAPES))
