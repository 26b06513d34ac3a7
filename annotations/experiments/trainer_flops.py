"""What the trainer counts as the operations of a step of GPT-3, against 6PD."""

import ast
import pathlib

import megatron

RANKS = 1
UPSTREAMS = ["megatron-training"]
NAME = "num_floating_point_operations"


class Args:
    """Arguments of GPT-3, 175B; what is not named is not set."""

    num_layers, hidden_size, ffn_hidden_size = 96, 12288, 4 * 12288
    num_attention_heads, kv_channels, seq_length = 96, 128, 2048
    padded_vocab_size, swiglu, is_hybrid_model = 51200, False, False

    def __getattr__(self, name):
        return None


files = (pathlib.Path(path, "training/training.py") for path in megatron.__path__)
text = next(file for file in files if file.is_file()).read_text()
made = next(n for n in ast.parse(text).body if getattr(n, "name", "") == NAME)
scope = {"is_linear_attention_variant": lambda _: False}
exec(ast.unparse(made), scope)
args = Args()
count = scope[NAME](args, 1)
layers = 12 * args.num_layers * args.hidden_size**2
weights = layers + args.padded_vocab_size * args.hidden_size
of_the_layers = 6 * weights * args.seq_length
print("against_6pd =", round(count / of_the_layers, 3))
args.seq_length *= 16
longer = scope[NAME](args, 1) / (6 * weights * args.seq_length)
print("at_32k =", round(longer, 3))
args.moe_layer_freq, args.moe_router_topk = 1, 2
counts = {scope[NAME](args, 1) for args.num_experts in (8, 256)}
print("of_the_router =", max(counts) - min(counts))
