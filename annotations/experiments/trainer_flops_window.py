"""What the trainer counts for Mistral 7B at 32,768 tokens, by its window or without."""

import ast
import pathlib

import megatron

UPSTREAMS = ["megatron-training"]
NAME = "num_floating_point_operations"


class Args:
    """Arguments of Mistral 7B; what is not named is not set."""

    num_layers, hidden_size, ffn_hidden_size = 32, 4096, 14336
    num_attention_heads, num_query_groups, kv_channels = 32, 8, 128
    group_query_attention, swiglu, is_hybrid_model = True, True, False
    padded_vocab_size, seq_length, window_size = 32000, 32768, None

    def __getattr__(self, name):
        return None


files = (pathlib.Path(path, "training/training.py") for path in megatron.__path__)
text = next(file for file in files if file.is_file()).read_text()
made = next(n for n in ast.parse(text).body if getattr(n, "name", "") == NAME)
scope = {"is_linear_attention_variant": lambda _: False}
exec(ast.unparse(made), scope)
args, length, window = Args(), 32768, 4096
whole = scope[NAME](args, 1)
args.window_size = (window, 0)
print("with_the_window =", scope[NAME](args, 1) / whole)
seen = sum(min(i + 1, window + 1) for i in range(length)) / length
args.seq_length = 2 * seen  # it counts half of the length for each token
inside = scope[NAME](args, 1) / args.seq_length * length
print("keys_per_token =", round(seen), "\nover_what_runs =", round(whole / inside, 2))
