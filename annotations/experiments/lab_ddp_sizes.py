"""What lab 01 trains and times: widths, the tensors of each, sizes of messages."""

from mini_impls.demos import lab_ddp
from mini_impls.model import GPTConfig, build_model


def tensors(width):
    heads, ffn = width // 16, 4 * width
    config = GPTConfig(
        hidden_size=width, num_attention_heads=heads, ffn_hidden_size=ffn
    )
    return len([*build_model(config).parameters()])


print(f"widths = {[*lab_ddp.HIDDEN_SIZES]}")
print(f"tensors = {sorted({tensors(width) for width in lab_ddp.HIDDEN_SIZES})}")
print(f"messages = {[min(lab_ddp.MESSAGE_BYTES), max(lab_ddp.MESSAGE_BYTES)]}")
